// Sluice for programs that embed it: this header includes all that is public. What it does not lead
// to is not installed and may change at any time.
//
//   error.hpp       what is thrown, and what it means
//   quantity.hpp    counts, sizes, durations and probabilities as people write them
//   hasher.hpp      key bytes → Digest, under a secret
//   catalogue.hpp   every filter by name: make_filter("bloom", {.keys = 1'000'000})
//   any_filter.hpp  what a filter does: observe, may_contain, insert, clear, stats
//   exact.hpp …     the filters as types of their own, for one key at a time without a virtual call
//   model/bloom.hpp errors and sizes of filters, without making one
//   plan.hpp        what you want → which filter, how large, erring how, and why
//   judge.hpp       hasher, filter, audit and inference in one; claims: keys that are pending
//   snapshot.hpp    a filter as bytes and back
//   audit.hpp       how often a running filter is wrong, measured
//   inferred.hpp    verdicts of least cost by a filter of one's own
//   inference.hpp   the same for a filter that runs, by name
//   dedup.hpp       the whole way from a source of bytes to sinks of records
//   simd.hpp        which instruction set is in use
//
// Where libsluice is installed, sluice/connectors/files/ has files as sources and sinks of `Dedup`,
// and state files that survive crashes.
#pragma once

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/base/quantity.hpp"
#include "sluice/base/verdict.hpp"
#include "sluice/filters/any_filter.hpp"
#include "sluice/filters/bloom/blocked_bloom.hpp"
#include "sluice/filters/bloom/bloom.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/counting.hpp"
#include "sluice/filters/dynamic/dynamic.hpp"
#include "sluice/filters/exact/exact.hpp"
#include "sluice/filters/none.hpp"
#include "sluice/hash/hasher.hpp"
#include "sluice/infer/inference.hpp"
#include "sluice/infer/inferred.hpp"
#include "sluice/judge/judge.hpp"
#include "sluice/kernels/simd.hpp"
#include "sluice/model/bloom.hpp"
#include "sluice/plan/plan.hpp"
#include "sluice/snapshot/delta.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "sluice/stream/dedup.hpp"
