# Sourced by run.sh and test.sh: makes the virtual environment .venv with pde-sharp in it, once.
# PYTHON names the interpreter (3.11 or newer); EXTRAS the optional parts to install.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "setup: $*" >&2
    exit 2
}

as_root_install() { # PACKAGE...: install Debian packages where that is possible
    command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return 1
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@" >/dev/null 2>&1; }
}

PYTHON=${PYTHON:-python3}
command -v "$PYTHON" >/dev/null || fail "no $PYTHON found; install Python 3.11 or newer, or name one: PYTHON=/path/to/python sh tools/run.sh"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$PYTHON is $("$PYTHON" -V 2>&1); Python 3.11 or newer is needed: PYTHON=/path/to/python sh tools/run.sh"

STAMP=.venv/.installed-${EXTRAS:-base}
if [ ! -f "$STAMP" ] || [ setup.cfg -nt "$STAMP" ]; then
    echo "setup: installing pde-sharp into .venv (a few minutes the first time)" >&2
    if ! "$PYTHON" -m venv .venv 2>/dev/null; then
        as_root_install python3-venv && "$PYTHON" -m venv .venv ||
            fail "$PYTHON cannot make virtual environments; on Debian: apt-get install python3-venv"
    fi
    .venv/bin/python -m pip install --quiet --editable ".${EXTRAS:+[$EXTRAS]}" || fail "pip could not install the dependencies (see above)"
    touch "$STAMP"
fi
