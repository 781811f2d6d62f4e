#!/usr/bin/env bash
# Writes constraints.txt: what resolves today, in an environment of its own, names and versions only.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

echo "constraints: resolving everything anew in a scratch environment"
"${PYTHON:-python3}" -m venv "$scratch/venv"
"$scratch/venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 10 \
    --timeout 120 --use-pep517 --editable ".[spark,data,postgres,open,mqtt,bench,dev]"

{
    echo '# The exact versions that are tested together. `make constraints` writes this file.'
    "$scratch/venv/bin/python" -m pip freeze --exclude-editable --exclude setuptools --exclude wheel
} >"$scratch/constraints.txt"

# A direct reference ("name @ address") would tie the file to one machine.
if grep -n '[@/]' <(grep -v '^#' "$scratch/constraints.txt") >&2; then
    echo "constraints: not written, the lines above are not 'name==version'" >&2
    exit 1
fi
cp "$scratch/constraints.txt" constraints.txt
echo "constraints: wrote constraints.txt"
