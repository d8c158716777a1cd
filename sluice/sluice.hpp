// Sluice for programs that embed it: this header includes all that is public. Headers that it does
// not include, directly or indirectly, are not installed and may change at any time.
//
//   seen.hpp             start here: has this key been seen? One class, planned for you
//
// Behind it, for those who want to choose:
//
//   plan.hpp             what you want → which filter, how large, with which errors, and why
//   catalogue.hpp        every filter by name: make_filter("bloom", {.keys = 1'000'000})
//   any_filter.hpp       what a filter does: observe, may_contain, insert, clear, stats
//   growing.hpp …        filters as types of their own: one key at a time without a virtual call
//   hasher.hpp           key bytes → Digest, under a secret
//   snapshot.hpp         a filter as bytes and back; pull.hpp piece by piece; clone.hpp
//   journal.hpp          what was remembered since the last snapshot
//   delta.hpp            the difference of two snapshots, for sites that exchange them
//
// For servers and pipelines:
//
//   memory_resource.hpp  where memory comes from, and how much may be taken
//   judge.hpp            keys and times in, verdicts out, with an audit and inference
//   claims.hpp           keys whose events are being delivered: claim, deliver, confirm
//   audit.hpp            how often a running filter is wrong, measured
//   inference.hpp        verdicts of least cost; inferred.hpp: the same with filters as types of
//   their own
//
// And for everyone: error.hpp (what is thrown), fields.hpp (your own words in messages),
// quantity.hpp (10M, 64MiB and 30s as people write them), simd.hpp (which instruction set is in
// use).
#pragma once

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/fields.hpp"
#include "sluice/base/memory_resource.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/cohort/cohort.hpp"
#include "sluice/filters/counting.hpp"
#include "sluice/filters/exact/exact.hpp"
#include "sluice/filters/growing/growing.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/infer/inference.hpp"
#include "sluice/infer/inferred.hpp"
#include "sluice/judge/claims.hpp"
#include "sluice/judge/judge.hpp"
#include "sluice/kernels/simd.hpp"
#include "sluice/plan/plan.hpp"
#include "sluice/seen.hpp"
#include "sluice/snapshot/clone.hpp"
#include "sluice/snapshot/delta.hpp"
#include "sluice/snapshot/journal.hpp"
#include "sluice/snapshot/pull.hpp"
#include "sluice/snapshot/snapshot.hpp"
