#compdef roundtable
# Completions of roundtable for zsh: save this as _roundtable in a folder of fpath.
_roundtable() {
    local line value
    local -a found described open
    found=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    for line in $found; do
        value="${line%%$'\t'*}"
        value="${value//:/\\:}"
        if [[ "$value" == *[=@] ]]; then
            open+=("$value:${line#*$'\t'}")
        else
            described+=("$value:${line#*$'\t'}")
        fi
    done
    if (( ${#described} + ${#open} == 0 )); then
        _files
        return
    fi
    (( ${#described} )) && _describe -V roundtable described
    (( ${#open} )) && _describe -V roundtable open -S ''
}
if [[ "$funcstack[1]" == "_roundtable" ]]; then
    _roundtable "$@"
else
    compdef _roundtable roundtable
fi
