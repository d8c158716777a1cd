// Hostile snapshots: loads the bytes, and what loads is used, written and loaded again.
//
// Checksums would stop every mutation at the door. Ignoring them in a fuzz build would mean fuzzing
// another reader than the one that ships, so the mutator repairs them instead, except now and then:
// the reader is the real one, and a file that breaks it breaks `sluice inspect` just so.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/snapshot/snapshot.hpp"
#include "tests/support/snapshot_repair.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace sluice;

void require(bool holds) {
  if (!holds) std::abort();
}

std::vector<std::byte> bytes_of(const Snapshot& snapshot) {
  BytesEncoder to;
  write_snapshot(snapshot.hasher, snapshot.filter, snapshot.labels, to, snapshot.sections);
  return to.take();
}

void use(Snapshot& snapshot) {
  AnyFilter& filter = snapshot.filter;
  std::vector<Digest> digests;
  // Enough to make a filter grow that can.
  for (int number = 0; number < 1000; ++number)
    digests.push_back(snapshot.hasher.digest(std::to_string(number)));
  digests.push_back({0, 0});
  digests.push_back({~std::uint64_t{0}, ~std::uint64_t{0}});

  std::vector<Verdict> verdicts(digests.size());
  filter.stats();
  filter.settings();
  filter.may_contain(digests, verdicts);
  // A filter of fixed size may have no room for all.
  const bool full =
      filter.observe(digests, verdicts) < digests.size() || filter.insert(digests) < digests.size();
  filter.may_contain(digests, verdicts);
  // A window may be shorter than what was inserted.
  if (filter.promises().no_false_negatives && !full && filter.kind() != FilterKind::window)
    require(std::ranges::all_of(verdicts, [](Verdict v) { return v == Verdict::duplicate; }));
  filter.stats();
  if (!filter.can_forget()) return;
  const std::uint64_t misses = filter.stats().forget_misses;
  for (const Digest& digest : digests) filter.forget(digest);
  // Two digests may share a trace only where filters err.
  if (filter.promises().no_false_positives && !full && filter.kind() != FilterKind::window)
    require(filter.stats().forget_misses == misses);
  filter.may_contain(digests, verdicts);
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 16 != 0)
    testing_support::repair_snapshot(std::as_writable_bytes(std::span(data, size)));
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  std::optional<Snapshot> snapshot;
  try {
    BytesDecoder from(bytes);
    snapshot.emplace(read_snapshot(from, default_memory(), understands_all));
    require(from.remaining() == 0);
  } catch (const CorruptSnapshot&) {
    return 0;  // the answer that hostile bytes deserve; anything else that is thrown is a finding
  }
  // There is one way to write a state.
  require(std::ranges::equal(bytes_of(*snapshot), bytes));
  use(*snapshot);
  // A few bytes may describe a large window, whose next stage is as large: slow here, and right.
  if (snapshot->filter.stats().bytes > std::uint64_t{64} << 20) return 0;
  const std::vector<std::byte> again = bytes_of(*snapshot);
  BytesDecoder from_again(again);
  Snapshot second = read_snapshot(from_again, default_memory(), understands_all);
  require(bytes_of(second) == again);
  if (second.filter.can_merge()) {
    second.filter.merge(snapshot->filter);
    const std::vector<std::byte> merged = bytes_of(second);
    BytesDecoder from_merged(merged);
    require(bytes_of(read_snapshot(from_merged, default_memory(), understands_all)) == merged);
  }
  second.filter.clear();
  use(second);
  return 0;
}
