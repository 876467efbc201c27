# Completions of roundtable for fish: save this as ~/.config/fish/completions/roundtable.fish
function __roundtable_complete
    set -l words (commandline --current-process --tokenize --cut-at-cursor)
    set -l word (commandline --current-token --cut-at-cursor)
    set -l found ($words[1] complete -- $words[2..-1] "$word" 2> /dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path "$word"
    end
end
complete --command roundtable --no-files --keep-order --arguments '(__roundtable_complete)'
