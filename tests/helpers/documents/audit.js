// Contrast as in WCAG 2.1 (success criterion 1.4.3), the order of headings, names of pictures and fields, landmarks.
(() => {
  const found = [];
  const rgb = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const back = rgb(getComputedStyle(e).backgroundColor);
      if (back.length === 3 || back[3] === 1) return back;
    }
    return [255, 255, 255];
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (["SCRIPT", "STYLE", "title", "desc"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    const ink = rgb(element.closest("svg") ? style.fill : style.color);
    const [high, low] = [light(ink), light(behind(element))].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${walk.currentNode.data.slice(0, 40)}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const own = Number(heading.tagName[1]);
    if (own > level + 1) found.push(`heading ${own} after ${level}: ${heading.textContent}`);
    level = own;
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) found.push("not one main");
  if (!document.documentElement.lang) found.push("no language");
  if (!document.title) found.push("no title");
  for (const image of document.querySelectorAll("img:not([alt]), svg:not([aria-labelledby])")) found.push(image.outerHTML.slice(0, 60));
  for (const field of document.querySelectorAll("input, select, textarea"))
    if (!field.getAttribute("aria-label") && !field.labels.length) found.push(field.outerHTML);
  for (const link of document.querySelectorAll("a, button, summary")) if (!link.textContent.trim()) found.push("empty: " + link.outerHTML);
  for (const nav of document.querySelectorAll("nav, [role=region]")) if (!nav.getAttribute("aria-label")) found.push("no name: " + nav.tagName);
  for (const box of document.querySelectorAll(".scroll, pre"))
    if (box.scrollWidth > box.clientWidth && box.checkVisibility() && box.tabIndex < 0) found.push("scrolls without the keyboard: " + box.outerHTML.slice(0, 60));
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  if (new Set(ids).size !== ids.length) found.push("ids that occur twice");
  return found;
})()
