#!/usr/bin/env bash
# Makes sure that there is a Java that Spark can use (17 or later), installing one where it may.
set -euo pipefail

wanted=17

# Spark starts $JAVA_HOME/bin/java if JAVA_HOME is set, else the java on the path. So do we.
java=java
if [ -n "${JAVA_HOME:-}" ]; then
    java=$JAVA_HOME/bin/java
fi

# Prints the major version: 17 for "17.0.15", 21 for "21-ea", 1 for "1.8.0_392"; nothing without Java.
major() {
    { "$java" -version 2>&1 || true; } | sed -n 's/^[^"]* version "\([0-9]*\).*/\1/p' | head -n 1
}

enough() {
    local found
    found=$(major)
    [ -n "$found" ] && [ "$found" -ge "$wanted" ]
}

fail() {
    printf 'java: %s\n' "$@" >&2
    exit 1
}

if enough; then
    exit 0
fi

if [ -n "${JAVA_HOME:-}" ]; then
    fail "JAVA_HOME is $JAVA_HOME, which holds no Java $wanted or later." \
        "Point it at one, or unset it to use the java on the path."
fi

if [ "$(id -u)" = 0 ] && [ -e /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "java: no Java $wanted or later here: installing Debian's openjdk-17-jre-headless"
    apt-get -o Acquire::Retries=3 update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -qy \
        --no-install-recommends openjdk-17-jre-headless >/dev/null
    if enough; then
        exit 0
    fi
    fail "openjdk-17-jre-headless is installed, but '$java -version' still does not say $wanted or later." \
        "Another java is probably first on the path: $(command -v java || echo none)"
fi

fail "Spark needs Java $wanted or later, and none was found." \
    "Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless" \
    "Fedora:         sudo dnf install java-21-openjdk-headless" \
    "macOS:          brew install openjdk@17, then set JAVA_HOME as it says" \
    "or unpack any JDK and set JAVA_HOME to its folder."
