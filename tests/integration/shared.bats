#!/usr/bin/env bats
# A filter on servers, as far as no server is needed: flags that do not go with it, addresses, servers that are
# not there. The rest is in tests/redis/test_shared.py.
load helper

# Nobody listens there.
gone=redis://127.0.0.1:1/clicks

@test "flags of a filter of this process are refused before anything is connected" {
  echo a >input
  for flag in "--window 10m" --refresh "--expect 10" "--fpr 1e-3" "--rate 1/s" "--slack 1%" "--npws 1%" \
    "--growth density" "--memory 64MiB" "--seed 1" --untrusted-keys; do
    # shellcheck disable=SC2086  # a flag and its value
    refused 2 dedup --filter "$gone" $flag input
    says "${flag%% *} says how a filter is made" "sluice cluster create"
  done
  for flag in "--state s" "--checkpoint-every 1s" --state-previous --abandon; do
    # shellcheck disable=SC2086
    refused 2 dedup --filter "$gone" $flag input
    says "${flag%% *} keeps a filter in a file"
  done
  for flag in "--audit 1/8" "--audit-memory 1MiB" "--audit-ghosts 10"; do
    # shellcheck disable=SC2086
    refused 2 dedup --filter "$gone" $flag input
    says "${flag%% *} measures a filter of this process" "sluice cluster status"
  done
  for flag in "--cost-lost 1" "--cost-duplicate 1" "--cost-lost-field 2" "--cost-duplicate-field 2" \
    "--prior-field 2" "--prior-table p" --learn-priors --posterior; do
    # shellcheck disable=SC2086
    refused 2 dedup --filter "$gone" $flag input
    says "${flag%% *} needs a filter of this process"
  done
  refused 2 dedup --filter "$gone" --forget input
  says "--forget takes keys back from a filter of this process"
  refused 2 dedup --filter "$gone" --when-unreachable maybe input
  says "--when-unreachable 'maybe' is not wait, duplicate or distinct"
  [ ! -e s ]
}

@test "flags of a filter on servers need one" {
  echo a >input
  refused 2 dedup --password-file input input
  says "--password-file is for a filter on servers" "redis://host:port/name"
  refused 2 dedup --filter exact --when-unreachable wait input
  says "--when-unreachable is for a filter on servers"
}

@test "an address that is wrong is refused with its form" {
  for url in redis://host/clicks redis://host:1 redis://host:99999/x redis+cluster://:1/x 'redis://h:1/a b'; do
    refused 2 dedup --filter "$url" /dev/null
    says "address '$url'" "redis://[user@]host:port/name"
    refused 2 cluster status "$url"
    says "address '$url'"
  done
  refused 2 dedup --filter redis://me:secret@host:1/x /dev/null
  says "it has a password, which others can see"
  [[ $stderr != *:secret@* ]]
}

@test "a server that is not there, and a password that is not there" {
  echo a >input
  refused 1 dedup --filter "$gone" input
  says "127.0.0.1:1" "refused"
  for command in create status drop; do
    refused 1 cluster "$command" "$gone"
    says "127.0.0.1:1"
  done
  refused 1 dedup --filter "$gone" --password-file missing input
  says "cannot open 'missing'"
  : >empty
  refused 2 cluster status "$gone" --password-file empty
  says "is to be a password"
}

@test "what cannot be made is refused before anything is connected" {
  refused 2 cluster create "$gone" --window soon
  refused 2 cluster create "$gone" --refresh
  says "--refresh needs --window"
  refused 2 cluster create "$gone" --rate 5/s
  says "--rate needs a window of time"
  refused 2 cluster create "$gone" --window 10m --rate 5/s --expect 10
  says "--rate and --expect say the same thing"
  refused 2 cluster create "$gone" --fpr 2
  refused 2 cluster rebuild "$gone"
  says "'rebuild' is not a command of sluice cluster"
  refused 2 cluster create
}
