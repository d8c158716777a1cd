# Completion of sluice(1) for fish.

function __sluice_filters
    sluice filters 2>/dev/null | string replace -rf '^([a-z_-]+): (.*)' '$1\t$2'
end

function __sluice_models
    sluice model 2>/dev/null | string replace -rf '^([a-z-]+): (.*)' '$1\t$2'
end

# The flags of the model that is named: each has its own.
function __sluice_model_flags
    set -l words (commandline -opc)
    test (count $words) -ge 3; and sluice model $words[3] --help 2>/dev/null |
        string replace -rf '^  (--[^ ]+) +(.*)' '$1\t$2'
end

set -l commands dedup generate filters inspect merge delta apply plan model compare repro
set -l none "not __fish_seen_subcommand_from $commands"
set -l dedup '__fish_seen_subcommand_from dedup'
set -l generate '__fish_seen_subcommand_from generate'
set -l clicks '__fish_seen_subcommand_from clicks'
set -l lines '__fish_seen_subcommand_from lines'

complete -c sluice -f
complete -c sluice -s h -l help -d 'Print the help of the command'
complete -c sluice -l help-all -d 'Print the help of every command'
complete -c sluice -n $none -l version -d 'Version, compiler and instruction set chosen'
complete -c sluice -n $none -a dedup -d 'Let each record of a stream through once'
complete -c sluice -n $none -a generate -d 'Write a synthetic stream'
complete -c sluice -n $none -a filters -d 'List the filters and their parameters'
complete -c sluice -n $none -a inspect -d 'Describe a snapshot and verify it'
complete -c sluice -n $none -a merge -d 'Merge several states into one'
complete -c sluice -n $none -a delta -d 'Write what changed between two states of one filter'
complete -c sluice -n $none -a apply -d 'Update a state with a delta'
complete -c sluice -n $none -a plan -d 'Choose a filter for your needs'
complete -c sluice -n $none -a model -d 'Predict errors, sizes and costs'
complete -c sluice -n $none -a compare -d 'Run filters side by side'
complete -c sluice -n $none -a repro -d 'Run the experiments of the papers'
# After it, commands are offered as before it.
complete -c sluice -n $none -a help -d 'Print the help of a command'

complete -c sluice -n $dedup -F
complete -c sluice -n $dedup -s 0 -l null -d 'Records end with a NUL byte'
complete -c sluice -n $dedup -l csv -d 'CSV with a header'
complete -c sluice -n $dedup -l tsv -d 'TSV with a header'
complete -c sluice -n $dedup -l json -l ndjson -d 'One JSON value per line'
complete -c sluice -n $dedup -l no-header -d 'CSV and TSV: the first record is data'
complete -c sluice -n $dedup -s k -l key -x -d 'What makes two records the same'
complete -c sluice -n $dedup -s d -l delimiter -x -d 'Lines: what separates fields'
complete -c sluice -n $dedup -l strict -d 'Stop at a record without the key'
complete -c sluice -n $dedup -l binary -d 'Read the bytes of compressed files and archives'
complete -c sluice -n $dedup -l max-record -x -d 'Stop at a record longer than this'
complete -c sluice -n $dedup -s w -l window -x -a '100k 1M 10m 1h 24h 7d hour day' \
    -d 'How much to remember'
complete -c sluice -n $dedup -l refresh -d 'A repeat restarts the window of its key'
complete -c sluice -n $dedup -l event-time -x -d 'The field that says when a record happened'
complete -c sluice -n $dedup -l arrival-time -d 'Go by the time at which a file is read'
complete -c sluice -n $dedup -l time-format -x -a 'auto s ms us ns iso8601 clf syslog rfc2822 strptime:' \
    -d 'How times are written'
complete -c sluice -n $dedup -l time-zone -x -a UTC -d 'Zone of times that do not say theirs'
complete -c sluice -n $dedup -l year -x -d 'Year of the first time, if times have none'
complete -c sluice -n $dedup -l max-ahead -x -d 'Further ahead, a time needs a second record'
complete -c sluice -n $dedup -l late -x -a 'pass drop mark' -d 'What becomes of late records'
complete -c sluice -n $dedup -l late-output -r -F -d 'Write late records here'
complete -c sluice -n $dedup -l rate -x -d 'Distinct keys to expect'
complete -c sluice -n $dedup -l slack -x -d 'How far past the window a key may be remembered'
complete -c sluice -n $dedup -l npws -x -d 'Expected share of such keys'
complete -c sluice -n $dedup -l growth -x -a 'density cardinality' -d 'What makes a stage full'
complete -c sluice -n $dedup -s m -l memory -x -d 'All the memory to take'
complete -c sluice -n $dedup -s n -l expect -x -d 'How many distinct keys to plan for'
complete -c sluice -n $dedup -l fpr -x -d 'Share of distinct records that may be lost'
complete -c sluice -n $dedup -s f -l filter -x -a '(__sluice_filters)' -d 'The filter'
complete -c sluice -n $dedup -l seed -x -d 'Hash under a fixed secret'
complete -c sluice -n $dedup -l untrusted-keys -d 'An attacker may choose keys'
complete -c sluice -n $dedup -l cost-lost -x -d 'What a lost event costs'
complete -c sluice -n $dedup -l cost-duplicate -x -d 'What a passed duplicate costs'
complete -c sluice -n $dedup -l cost-lost-field -x -d 'The field with what losing the record costs'
complete -c sluice -n $dedup -l cost-duplicate-field -x -d 'The field with what passing it again costs'
complete -c sluice -n $dedup -l prior-field -x -d 'The field with the probability of the key'
complete -c sluice -n $dedup -l prior-table -r -F -d 'A file of keys and their probabilities'
complete -c sluice -n $dedup -l learn-priors -d 'Learn the probabilities from the stream'
complete -c sluice -n $dedup -l posterior -d 'Write the probability that a record was seen'
complete -c sluice -n $dedup -s o -l output -r -F -d 'Write here instead of to standard output'
complete -c sluice -n $dedup -l duplicates -r -F -d 'Write the duplicates to this file'
complete -c sluice -n $dedup -l invert -d 'Let the duplicates through'
complete -c sluice -n $dedup -l forget -r -F -d 'First forget the keys of these records'
complete -c sluice -n $dedup -l state -r -F -d 'Remember across runs'
complete -c sluice -n $dedup -l checkpoint-every -x -a '10s 30s 5m 1M' -d 'Save the state so often'
complete -c sluice -n $dedup -l abandon -d 'Give up the unfinished run of the state, keep its keys'
complete -c sluice -n $dedup -l state-previous -d 'Start from the state before the last save'
complete -c sluice -n $dedup -l audit -x -a '1/64 1/1024' -d 'Remember one key in N exactly and measure the errors'
complete -c sluice -n $dedup -l audit-memory -x -d 'What the audit may take'
complete -c sluice -n $dedup -l audit-ghosts -x -d 'Random keys to probe at exit'
complete -c sluice -n $dedup -l threads -x -a '1 2' -d 'How many may work at once'
complete -c sluice -n $dedup -l stats -x -a 'text json none' -d 'What to say at the end'

complete -c sluice -n "$generate; and not __fish_seen_subcommand_from clicks lines" \
    -a 'clicks lines'
complete -c sluice -n $generate -s n -l records -x -d 'How many records'
complete -c sluice -n $generate -l duplicates -x -d 'Share that repeats an earlier one'
complete -c sluice -n $generate -l seed -x -d 'The same seed gives the same bytes'
complete -c sluice -n $generate -s o -l output -r -F -d 'Write here instead of to standard output'
complete -c sluice -n $clicks -l skew -x -d 'How unequal users are'
complete -c sluice -n $clicks -l users -x -d 'How many users there are'
complete -c sluice -n $clicks -l malformed -x -d 'Share of records without a key'
complete -c sluice -n $lines -l length -x -d 'Bytes of a line'

complete -c sluice -n '__fish_seen_subcommand_from filters' -l json -d 'One JSON object per filter'
complete -c sluice -n '__fish_seen_subcommand_from inspect' -F
complete -c sluice -n '__fish_seen_subcommand_from inspect' -l json -d 'One JSON object'
set -l exchange '__fish_seen_subcommand_from merge delta apply'
complete -c sluice -n $exchange -F
complete -c sluice -n $exchange -s o -l output -r -F -d 'The file to write'
complete -c sluice -n $exchange -l json -d 'One JSON object'

set -l plan '__fish_seen_subcommand_from plan'
complete -c sluice -n $plan -s w -l window -x -a '100k 1M 10m 1h 24h 7d hour day' -d 'What to remember'
complete -c sluice -n $plan -l refresh -d "A repeat restarts its key's window"
complete -c sluice -n $plan -l rate -x -d 'Distinct keys to expect, for a window of time'
complete -c sluice -n $plan -s n -l expect -x -d 'How many distinct keys to plan for'
complete -c sluice -n $plan -l fpr -x -d 'The share of distinct records that may be lost'
complete -c sluice -n $plan -l fnr -x -d 'The share of repeats that may be let through'
complete -c sluice -n $plan -s m -l memory -x -d 'All the memory to take'
complete -c sluice -n $plan -l slack -x -d 'How far past the window a key may be remembered'
complete -c sluice -n $plan -l npws -x -d 'How many such keys are to be expected'
complete -c sluice -n $plan -l repeat-every -x -d 'How far apart the records of a key are'
complete -c sluice -n $plan -l lines -x -d 'Cache lines that a new key may touch'
complete -c sluice -n $plan -l json -d 'One JSON object'

set -l model '__fish_seen_subcommand_from model'
complete -c sluice -n "$model; and test (count (commandline -opc)) -eq 2" -a '(__sluice_models)'
complete -c sluice -n $model -a '(__sluice_model_flags)'
complete -c sluice -n $model -l json -d 'One JSON object'

set -l compare '__fish_seen_subcommand_from compare'
complete -c sluice -n $compare -F
complete -c sluice -n $compare -s f -l filter -x -a '(__sluice_filters)' -d 'A filter; may repeat'
complete -c sluice -n $compare -s m -l memory -x -d 'The size of each filter'
complete -c sluice -n $compare -s w -l window -x -a '100k 1M 10m 1h 24h 7d hour day' -d 'How many records or how much time counts'
complete -c sluice -n $compare -l event-time -x -d 'The field that says when a record happened'
complete -c sluice -n $compare -l time-format -x -a 'auto s ms us ns iso8601 clf syslog rfc2822 strptime:' \
    -d 'How times are written'
complete -c sluice -n $compare -l time-zone -x -a UTC -d 'Zone of times that do not say theirs'
complete -c sluice -n $compare -l year -x -d 'Year of the first time, if times have none'
complete -c sluice -n $compare -l rate -x -d 'How fast records come'
complete -c sluice -n $compare -l expect -x -d 'How many distinct keys to plan for'
complete -c sluice -n $compare -l fpr -x -d 'The error to plan for'
complete -c sluice -n $compare -l stream -x -a 'uniform zipf power bursty' -d 'Make the stream up'
complete -c sluice -n $compare -l records -x -d 'How many records to make up'
complete -c sluice -n $compare -l distinct -x -d 'The share whose key is new'
complete -c sluice -n $compare -l seed -x -d 'The same seed gives the same stream'
complete -c sluice -n $compare -s 0 -l null -d 'Records end with a NUL byte'
complete -c sluice -n $compare -l csv -d 'CSV with a header'
complete -c sluice -n $compare -l tsv -d 'TSV with a header'
complete -c sluice -n $compare -l json -l ndjson -d 'One JSON value per line'
complete -c sluice -n $compare -l binary -d 'Read the bytes of compressed files and archives'
complete -c sluice -n $compare -l no-header -d 'CSV and TSV: the first record is data'
complete -c sluice -n $compare -s k -l key -x -d 'What makes two records the same'
complete -c sluice -n $compare -s d -l delimiter -x -d 'What separates the fields of lines'
complete -c sluice -n $compare -l stats -x -a 'text json' -d 'The form of the results'
complete -c sluice -n $compare -l plot -r -F -d 'Draw the errors over the stream'

set -l repro '__fish_seen_subcommand_from repro'
complete -c sluice -n $repro -f -a 'koloniari shtul dutta guo dautrich' -d 'A paper'
complete -c sluice -n $repro -s o -l out -r -F -d 'The folder to write to'
complete -c sluice -n $repro -l scale -x -d 'Sizes as a share of the paper'
complete -c sluice -n $repro -l seed -x -d 'The same seed gives the same files'
complete -c sluice -n $repro -l repeats -x -d 'Runs with other seeds, for standard errors'
complete -c sluice -n $repro -l input -r -F -d 'A stream of your own'
complete -c sluice -n $repro -l only -x -d 'This experiment alone; may repeat'
complete -c sluice -n $repro -l set -x -d 'Another value for a parameter; may repeat'
complete -c sluice -n $repro -l no-plot -d 'No figures'
complete -c sluice -n $repro -l list -d 'Say which experiments there are'
