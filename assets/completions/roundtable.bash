# Completions of roundtable for bash. In ~/.bashrc: eval "$(roundtable completions bash)"
_roundtable() {
    local line="${COMP_LINE:0:COMP_POINT}" word part value
    local -a words
    read -ra words <<< "$line"
    [[ "$line" == *[[:space:]] ]] && words+=("")
    word="${words[${#words[@]} - 1]}"
    # bash replaces only what is behind the last of these characters.
    part=""
    [[ "$word" == *[=:]* && "$COMP_WORDBREAKS" == *[=:]* ]] && part="${word%"${word##*[=:]}"}"
    COMPREPLY=()
    while IFS=$'\t' read -r value _; do
        COMPREPLY+=("${value#"$part"}")
    done < <("${words[0]}" complete -- "${words[@]:1}" 2> /dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[=@] ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
complete -o default -F _roundtable roundtable
