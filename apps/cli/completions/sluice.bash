# Completion of sluice(1) for bash.
# shellcheck shell=bash

# _sluice_complete WORDS: those that start with the word being typed.
_sluice_complete() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur")
}

_sluice() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local command=${COMP_WORDS[1]} common='-h --help --help-all'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _sluice_complete "dedup generate filters inspect merge delta apply plan model compare count cluster repro help $common --version"
    return
  fi
  if [[ $command == help ]]; then
    ((COMP_CWORD > 2)) ||
      _sluice_complete 'dedup generate filters inspect merge delta apply plan model compare count cluster repro'
    return
  fi

  # The value of the flag before.
  case $command,$prev in
    dedup,-f | dedup,--filter | compare,-f | compare,--filter)
      _sluice_complete "$(sluice filters 2>/dev/null | sed -n 's/^\([a-z_-]*\): .*/\1/p')"
      return ;;
    dedup,--audit) _sluice_complete '1/64 1/1024'; return ;;
    dedup,--audit-memory) _sluice_complete '1MiB 16MiB'; return ;;
    dedup,--audit-ghosts) _sluice_complete '1M 10M'; return ;;
    compare,--stream) _sluice_complete 'uniform zipf power bursty'; return ;;
    dedup,--threads) _sluice_complete '1 2'; return ;;
    dedup,--stats) _sluice_complete 'text json none'; return ;;
    compare,--stats | count,--stats) _sluice_complete 'text json'; return ;;
    dedup,-w | dedup,--window | compare,-w | compare,--window | plan,-w | plan,--window | cluster,-w | cluster,--window)
      _sluice_complete '100k 1M 10m 1h 24h 7d hour day'
      return ;;
    dedup,--time-format | compare,--time-format | count,--time-format) _sluice_complete 'auto s ms us ns iso8601 clf syslog rfc2822 strptime:'; return ;;
    dedup,--when-unreachable) _sluice_complete 'wait duplicate distinct'; return ;;
    dedup,--late) _sluice_complete 'pass drop mark'; return ;;
    dedup,--growth) _sluice_complete 'density cardinality'; return ;;
    dedup,--checkpoint-every) _sluice_complete '10s 30s 5m 1M'; return ;;
    dedup,--duplicates | dedup,--late-output | dedup,--state | dedup,--forget | dedup,--prior-table | *,--password-file | compare,--plot | count,--plot | repro,--input | repro,--out | *,-o | *,--output)
      return ;;  # a file
  esac

  if [[ $command == repro && $cur != -* ]]; then
    _sluice_complete 'koloniari shtul dutta guo dautrich'
    return
  fi
  if [[ $command == cluster ]]; then
    case ${COMP_WORDS[2]},$COMP_CWORD in
      *,2) _sluice_complete "create status drop $common" ;;
      create,*)
        _sluice_complete "-w --window --refresh -n --expect --rate --fpr -m --memory --slack -f --filter
          --sites --plan --password-file --json $common" ;;
      status,*) _sluice_complete "--password-file --json $common" ;;
      drop,*) _sluice_complete "--yes --password-file --json $common" ;;
    esac
    return
  fi
  if [[ $command == generate ]]; then
    local stream='-n --records --duplicates --seed -o --output'
    case ${COMP_WORDS[2]},$COMP_CWORD in
      *,2) _sluice_complete "clicks lines $common" ;;
      clicks,*) _sluice_complete "$stream --skew --users --malformed $common" ;;
      lines,*) _sluice_complete "$stream --length $common" ;;
    esac
    return
  fi
  if [[ $command == model ]]; then
    if ((COMP_CWORD == 2)); then
      _sluice_complete "$(sluice model 2>/dev/null | sed -n 's/^\([a-z-]*\): .*/\1/p') --json $common"
    elif [[ $cur == -* ]]; then
      # Each model has flags of its own.
      _sluice_complete "$(sluice model "${COMP_WORDS[2]}" --help 2>/dev/null |
        sed -n 's/^  \(--[^ ]*\) .*/\1/p') --json --help"
    fi
    return
  fi
  if [[ $cur == -* ]]; then
    case $command in
      dedup)
        _sluice_complete "-0 --null --csv --tsv --json --ndjson --no-header -k --key --key-regex
          --key-bytes --log -d --delimiter --ignore-case --trim --empty-keys --strict --binary
          --max-record --follow -w --window --refresh --event-time --time-bytes --arrival-time
          --time-format --time-zone --year --max-ahead --late
          --late-output --rate --slack --npws --growth
          -n --expect --fpr -m --memory -f --filter --password-file --when-unreachable --seed --untrusted-keys
          --cost-lost --cost-duplicate --cost-lost-field --cost-duplicate-field --prior-field
          --prior-table --learn-priors --posterior -o --output --duplicates --invert --forget
          --state --checkpoint-every --state-previous --abandon --audit --audit-memory --audit-ghosts
          --threads --stats $common" ;;
      compare)
        _sluice_complete "-f --filter -m --memory -w --window --expect --fpr --stream --records
          --distinct --seed -0 --null --csv --tsv --json --ndjson --no-header -k --key
          --key-regex --key-bytes --log -d --delimiter --ignore-case --trim --empty-keys --binary --event-time
          --time-bytes --time-format --time-zone --year --rate --stats --plot $common" ;;
      count)
        _sluice_complete "-0 --null --csv --tsv --json --ndjson --no-header -k --key --key-regex
          --key-bytes --log -d --delimiter --ignore-case --trim --empty-keys --strict --binary
          --max-record --event-time --time-bytes --time-format --time-zone --year -m --memory --top --plot
          --stats $common" ;;
      plan)
        _sluice_complete "-w --window --refresh --rate -n --expect --fpr --fnr -m --memory --slack
          --npws --lines --repeat-every --json $common" ;;
      repro)
        _sluice_complete "-o --out --scale --seed --repeats --input --only --set --no-plot
          --list $common" ;;
      filters | inspect) _sluice_complete "--json $common" ;;
      merge | delta | apply) _sluice_complete "-o --output --json $common" ;;
    esac
    return
  fi
}

# Where we offer nothing, bash offers files.
complete -o default -F _sluice sluice
