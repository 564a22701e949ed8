#!/usr/bin/env bash
# Makes a virtual environment that holds exactly a lock file, and only when the lock or the interpreter changed.
# usage: scripts/setup.sh VENV LOCK [PYTHON]
set -euo pipefail
venv=$1 lock=$2 python=${3:-}
oldest=3.11

say() { echo "setup: $*" >&2; }

fits() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

choose() {
    local name
    if [[ -n $python ]]; then
        fits "$python" && echo "$python" && return
        say "PYTHON=$python is no Python $oldest or newer with venv; give another one, for example PYTHON=python3.13"
        return 1
    fi
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        fits "$name" && echo "$name" && return
    done
    say "found no Python $oldest or newer with venv on PATH (python3: $(python3 --version 2>/dev/null || echo none))"
    say "install one (Debian, Ubuntu: apt-get install python3-venv) or name it: make PYTHON=/path/to/python3.13"
    return 1
}

# One at a time in a checkout: the lock is on the folder itself, and the kernel drops it when this shell ends.
exec 9<.
flock 9

if [[ -z $python && -x $venv/bin/python ]]; then
    base=$venv/bin/python # what is there is kept until the lock changes
else
    base=$(choose)
fi
wanted="$("$base" --version) $(sha256sum <"$lock")"
stamp=$venv/.lock-installed # there from the start, filled at the end
[[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0
[[ $base == "$venv/bin/python" ]] && base=$(choose) && wanted="$("$base" --version) $(sha256sum <"$lock")"

if [[ -e $venv && ! -e $stamp ]]; then
    say "$venv was not made by this script, and is left as it is; move it away (mv $venv $venv.mine), then run this again"
    exit 1
fi

log=$(mktemp)
install() {
    rm -rf "$venv"
    mkdir -p "$venv"
    : >"$stamp"
    "$base" -m venv "$venv"
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --progress-bar off \
        --no-deps --require-hashes -r "$lock"
}
set -m # a process group of its own, so that the whole of it can be ended
install 9<&- </dev/null >"$log" 2>&1 &
job=$!
set +m
trap 'kill -- -"$job" 2>/dev/null || true; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
say "installing $lock into $venv with $("$base" --version) ..."
while kill -0 "$job" 2>/dev/null; do
    ((SECONDS % 10 == 9)) && say "installing, $SECONDS s: $(tail -n 1 "$log" | cut -c 1-80)"
    sleep 1
done
if ! wait "$job"; then
    say "failed:"
    tail -n 15 "$log" >&2
    exit 1
fi
echo "$wanted" >"$stamp"
say "done in $SECONDS s"
