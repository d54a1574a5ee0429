// Puts the parts that the server sends in their places; what a reader has opened or chosen stays so.
const state = document.getElementById("state");
const source = new EventSource(document.body.dataset.events);

source.onmessage = (event) => {
  const { slot, html } = JSON.parse(event.data);
  const place = document.getElementById(slot);
  if (!place) return;
  const open = new Set([...place.querySelectorAll("details[open] > summary")].map((each) => name(each)));
  const chosen = new Set([...place.querySelectorAll("input:checked")].map((each) => each.value));
  place.innerHTML = html;
  for (const summary of place.querySelectorAll("summary")) {
    if (open.has(name(summary))) summary.parentElement.open = true;
  }
  for (const box of place.querySelectorAll("input")) box.checked = chosen.has(box.value);
  state.textContent = `as of ${new Date().toLocaleTimeString()}`;
};
source.onerror = () => { state.textContent = "the server does not answer; trying again"; };

// The first word of a summary is the program's name; what follows it changes as the run goes on.
function name(summary) { return summary.textContent.split(":")[0]; }
