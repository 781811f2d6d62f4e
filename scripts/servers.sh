#!/usr/bin/env bash
# Makes sure that there are the servers that tests start themselves, PostgreSQL and Mosquitto,
# installing them where it may. Tests that need one which is not there are skipped, and say so.
set -euo pipefail

# Debian does not put all of them on the path.
has_postgres() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}
has_mosquitto() {
    command -v mosquitto >/dev/null || [ -x /usr/sbin/mosquitto ]
}

missing() {
    has_postgres || echo postgresql
    has_mosquitto || echo mosquitto
}

mapfile -t wanted < <(missing)
[ "${#wanted[@]}" -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "servers: installing Debian's ${wanted[*]}"
    # Servers that are only there for tests are not to be started, now or with the machine.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    if apt-get -o Acquire::Retries=3 update -q >/dev/null; then
        DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -qy \
            --no-install-recommends "${wanted[@]}" >/dev/null || true
    fi
    [[ "${wanted[*]}" != *mosquitto* ]] || ! command -v systemctl >/dev/null ||
        systemctl disable --quiet mosquitto 2>/dev/null || true
    mapfile -t wanted < <(missing)
    [ "${#wanted[@]}" -gt 0 ] || exit 0
fi

printf 'servers: %s\n' "${wanted[*]} not found, so tests that start it are skipped." \
    "Debian, Ubuntu: sudo apt-get install ${wanted[*]}" \
    "Fedora:         sudo dnf install postgresql-server mosquitto" \
    "macOS:          brew install postgresql mosquitto" >&2
