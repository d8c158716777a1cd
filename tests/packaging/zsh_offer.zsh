# zsh -f zsh_offer.zsh FOLDER LINE: what zsh offers at the end of LINE, one word a line, with the
# completion functions of FOLDER. zsh completes only in its line editor, so one is run in a
# pseudo-terminal, and LINE and a tab are typed into it.
zmodload zsh/zpty

# Run by the inner shell: prints every match that is added, between two marks. Marks are put
# together when printed, so that the echo of these commands is no mark.
setup='
  PROMPT= RPROMPT=
  fpath=('${(q)1}' $fpath)
  autoload -Uz compinit && compinit -u -D
  zstyle ":completion:*" verbose no
  compadd() {
    # -O, -A and -D only compute: nothing is offered.
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
      builtin compadd "$@"
      return
    fi
    local -a hits
    builtin compadd -A hits "$@"
    (($#hits)) && print -rl -- "" $hits
    builtin compadd "$@"
  }
  begin-list() { print -r -- "BEGIN-${:-LIST}"; comppostfuncs=(end-list) }
  end-list() { print -r -- "" "END-${:-LIST}"; exit }
  compprefuncs=(begin-list)
  bindkey "^I" complete-word
  print -r -- "NOW-${:-TYPE}"
'
setup_file=$(mktemp)
print -r -- $setup >$setup_file

zpty inner TERM=dumb zsh -f -i
zpty -w inner "source $setup_file"

# Reads lines until one that holds the mark; prints them.
until_mark() {
  local line
  while zpty -r inner line; do
    [[ $line == *$1* ]] && return
    print -r -- ${${line%$'\n'}%$'\r'}
  done
  return 1
}
until_mark NOW-TYPE >/dev/null
zpty -w -n inner $2$'\t'
until_mark BEGIN-LIST >/dev/null
until_mark END-LIST
rm -f $setup_file
zpty -d inner
