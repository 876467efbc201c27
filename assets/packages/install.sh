#!/bin/sh
# Installs roundtable @VERSION@ below PREFIX (default: ~/.local): the program, its manual page and completions.
# ROUNDTABLE_FROM is another place of the archives: an address, or file:// and a folder.
set -eu

prefix=${PREFIX:-${HOME:?set HOME or PREFIX}/.local}
prefix=${prefix%/}
from=${ROUNDTABLE_FROM:-@REPOSITORY@/releases/download/v@VERSION@}
sums='@SUMS@'

fail() {
    printf 'error: %s\n' "$1" >&2
    exit 1
}

# A function, so that nothing runs before the whole file has arrived.
main() {
    # The static binary runs on every Linux.
    case "$(uname -s) $(uname -m)" in
        "Linux x86_64") target=x86_64-unknown-linux-musl ;;
        "Linux aarch64" | "Linux arm64") target=aarch64-unknown-linux-musl ;;
        "Darwin x86_64") target=x86_64-apple-darwin ;;
        "Darwin arm64") target=aarch64-apple-darwin ;;
        *) fail "there is no build for $(uname -s) on $(uname -m); try: cargo install roundtable-tui" ;;
    esac
    name=roundtable-tui-@VERSION@-$target
    expected=$(printf '%s\n' "$sums" | sed -n "s/  $name.tar.gz\$//p")
    [ -n "$expected" ] || fail "this installer has no checksum of $name.tar.gz"

    folder=$(mktemp -d)
    trap 'rm -rf "$folder" "$prefix/bin/roundtable.new"' EXIT
    trap 'exit 1' HUP INT TERM
    if command -v curl >/dev/null; then
        curl --fail --silent --show-error --location --output "$folder/archive" "$from/$name.tar.gz"
    elif command -v wget >/dev/null; then
        wget --quiet --output-document="$folder/archive" "$from/$name.tar.gz"
    else
        fail "curl or wget is needed"
    fi || fail "$from/$name.tar.gz could not be downloaded"

    if command -v sha256sum >/dev/null; then
        found=$(sha256sum <"$folder/archive")
    elif command -v shasum >/dev/null; then
        found=$(shasum -a 256 <"$folder/archive")
    else
        fail "sha256sum or shasum is needed"
    fi
    found=${found%% *}
    [ "$found" = "$expected" ] ||
        fail "the checksum of $name.tar.gz is wrong, nothing was installed: $found instead of $expected"

    tar -xzf "$folder/archive" -C "$folder"
    # Each file takes its name when it is whole: the old program may be running, and a copy may fail.
    (cd "$folder/$name" && find bin share -type f) >"$folder/files"
    while read -r file; do
        mkdir -p "$prefix/${file%/*}"
        cp "$folder/$name/$file" "$prefix/$file.new"
        mv -f "$prefix/$file.new" "$prefix/$file"
    done <"$folder/files"
    printf 'Installed %s\n' "$prefix/bin/roundtable"
    case ":$PATH:" in
        *":$prefix/bin:"*) ;;
        *) printf 'Put %s on your PATH.\n' "$prefix/bin" ;;
    esac
    printf 'If your shell does not find its completions: roundtable completions bash (or zsh, fish)\n'
}

main
