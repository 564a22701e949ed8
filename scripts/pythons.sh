#!/usr/bin/env bash
# Runs the unit tests and the stand-in half of the contract tests with each Python from 3.11 to 3.14 that is found on
# PATH or in pyenv's folder, but for the one in VENV, which runs everything anyway.
# usage: scripts/pythons.sh VENV
set -euo pipefail
venv=$1
cache=${XDG_CACHE_HOME:-$HOME/.cache}/spark-ui-agent/pythons
has=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
found=()

find_python() { # minor version -> path of an interpreter that runs
    local candidate
    for candidate in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/python; do
        if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

for minor in 3.11 3.12 3.13 3.14; do
    [[ $minor == "$has" ]] && continue
    if ! python=$(find_python "$minor"); then
        echo "pythons: no Python $minor found, left out" >&2
        continue
    fi
    mkdir -p "$cache"
    scripts/setup.sh "$cache/$minor" requirements/dev.txt "$python"
    echo "pythons: $("$cache/$minor/bin/python" --version)" >&2
    "$cache/$minor/bin/python" -m pytest -q -p no:cacheprovider -m "not real and not spark" tests/unit tests/contract
    found+=("$minor")
done
if ((${#found[@]} == 0)); then
    echo "pythons: found none beside $has: nothing was tested here" >&2
    exit 0
fi
echo "pythons: passed with ${found[*]}" >&2
