// Written here and not by a library, which does not know the types of our values: svc looks up TASK and REVISION, and the
// shell completes FILE and DIRECTORY.

export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

/** The scripts run `svc __complete` with the words up to the cursor. */
export const completeCommand = "__complete";

// Each runs `svc` for the candidates, so that an installed script also works for later releases. The first line of the
// answer says whether to complete paths, too (`files`, `folders`, or `words` for neither). Each further line is a candidate,
// with a tab and its description.

const bash = `# Completion of svc for bash.
_svc() {
  local words=() current raw="\${COMP_WORDS[COMP_CWORD]}" word joined=0 kind line quotes="[\\"'\\\\\\\\]"
  # Bash splits "--name=value", "a:b" and "a@b" into several words; join them again.
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [[ \${#words[@]} -gt 0 && ( $word == [=:@] || $joined == 1 ) ]]; then
      words[\${#words[@]} - 1]+=$word
      [[ $word == [=:@] ]] && joined=1 || joined=0
    else
      words+=("$word")
    fi
  done
  [[ $raw == [=:] ]] && raw=""
  # Readline replaces the "@", too.
  [[ $raw != @ && \${COMP_WORDS[COMP_CWORD - 1]} == @ ]] && raw=@$raw
  words=("\${words[@]//$quotes/}")
  current=\${words[\${#words[@]} - 1]}
  current=\${current%"\${raw//$quotes/}"}
  COMPREPLY=()
  {
    read -r kind
    while IFS= read -r line; do
      word=\${line%%$'\\t'*}
      word=\${word#"$current"}
      [[ $raw == [\\"\\']* ]] || word=\${word// /\\\\ }
      COMPREPLY+=("$word")
    done
  } < <(svc ${completeCommand} "\${words[@]}" 2>/dev/null)
  case $kind in
    files) compopt -o filenames; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$raw") ;;
    folders) compopt -o filenames; mapfile -t -O "\${#COMPREPLY[@]}" COMPREPLY < <(compgen -d -- "$raw") ;;
  esac
}
complete -F _svc svc
`;

const zsh = `#compdef svc
# Completion of svc for zsh.
_svc() {
  local kind line
  local -a lines candidates
  lines=("\${(@f)$(svc ${completeCommand} "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  kind=$lines[1]
  for line in "\${(@)lines[2,-1]}"; do
    candidates+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${\${(M)line%%$'\\t'*}:+\${line#*$'\\t'}}")
  done
  (( $#candidates )) && _describe -V svc candidates
  [[ $kind == words ]] && return
  [[ $PREFIX == --*=* ]] && compset -P '*='
  [[ $kind == files ]] && _files
  [[ $kind == folders ]] && _files -/
}
if [[ $funcstack[1] == _svc ]]; then
  _svc "$@"
else
  compdef _svc svc
fi
`;

const fish = `# Completion of svc for fish.
function __svc_complete
    set -l word (commandline -ct)
    set -l words (commandline -opc) (string unescape -- $word; or printf '%s\\n' $word)
    set -l answer (svc ${completeCommand} $words[2..-1] 2>/dev/null)
    set -l kind $answer[1]
    printf '%s\\n' $answer[2..-1]
    test "$kind" = files -o "$kind" = folders; or return
    set -l current (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' $current)
    for path in (__fish_complete_path (string replace -- "$option" '' $current))
        test "$kind" = folders; and not string match -qr -- '/(\\t|$)' $path; and continue
        printf '%s%s\\n' "$option" $path
    end
end
complete -c svc -f -a '(__svc_complete)'
`;

export const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
