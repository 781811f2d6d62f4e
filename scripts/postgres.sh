#!/usr/bin/env bash
# Makes sure that there is a PostgreSQL server that tests can start, installing one where it may.
# Only the tests of journals in PostgreSQL need it: without one they are skipped, and say so.
set -euo pipefail

# Debian does not put the server on the path, but in a folder for each version.
found() {
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}

if found; then
    exit 0
fi

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "postgres: no PostgreSQL server here: installing Debian's postgresql"
    # A server that is only there for tests is not to be started with the machine.
    mkdir -p /etc/postgresql-common
    [ -e /etc/postgresql-common/createcluster.conf ] ||
        echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.conf
    if apt-get -o Acquire::Retries=3 update -q >/dev/null &&
        DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -qy \
            --no-install-recommends postgresql >/dev/null && found; then
        exit 0
    fi
fi

printf 'postgres: %s\n' "no PostgreSQL server was found, so tests of journals in it are skipped." \
    "Debian, Ubuntu: sudo apt-get install postgresql" \
    "Fedora:         sudo dnf install postgresql-server" \
    "macOS:          brew install postgresql" >&2
