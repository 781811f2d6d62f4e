#!/usr/bin/env bash
# Creates .venv beside the Makefile and installs the project into it, with the pinned versions.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

# True where apt-get can install something without asking: root on Debian or one of its kin.
can_apt() {
    [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null
}

command -v "$python" >/dev/null || fail \
    "no '$python' was found, and Driftline needs Python 3.11 or later." \
    "Install it (Debian, Ubuntu: apt-get install python3 python3-venv) or name one: make setup PYTHON=/path/to/python3.12"

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail \
    "$("$python" --version 2>&1) is too old: Driftline needs Python 3.11 or later." \
    "Install one, or name another that you have: make setup PYTHON=/path/to/python3.12"

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    # Debian ships these two modules in a package of their own, for its own interpreter only.
    if can_apt && [ "$(command -v "$python")" = /usr/bin/python3 ]; then
        echo "setup: Python's venv module is missing: installing Debian's python3-venv"
        apt-get -o Acquire::Retries=3 update -q >/dev/null
        DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -qy \
            --no-install-recommends python3-venv >/dev/null
    else
        fail "'$python' has no venv module." \
            "Install it (Debian, Ubuntu: sudo apt-get install python3-venv) and try again."
    fi
fi

# An interrupted setup, or a checkout that was moved, leaves an environment that does not run.
if ! .venv/bin/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "setup: creating .venv with $("$python" --version)"
    "$python" -m venv --clear .venv
fi

echo "setup: installing Driftline and its pinned dependencies into .venv (a few minutes the first time)"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 10 --timeout 120 \
    --use-pep517 --constraint constraints.txt --editable ".[spark,data,postgres,open,mqtt,bench,dev]"
echo "setup: compiling the kernels (a minute or two, once; kept in the user's cache directory)"
.venv/bin/python -c 'from driftline.net.warm import warm; warm()'
echo "setup: done"
