// A program with a filter of its own: judges a batch of events, then carries on from a snapshot as
// it would after a restart.
#include <sluice/sluice.hpp>

#include <array>
#include <cstdio>
#include <string_view>

constexpr std::size_t kBatch = 4;
using Batch = std::array<std::string_view, kBatch>;

// Asks about every key and remembers it: the first of its kind is distinct, the rest are
// duplicates.
void judge(sluice::AnyFilter& filter, const sluice::Hasher& hasher, const Batch& keys) {
  std::array<sluice::Digest, kBatch> digests;
  std::array<sluice::Verdict, kBatch> verdicts;
  hasher.digest(keys, digests);
  filter.observe(digests, verdicts);
  for (std::size_t i = 0; i < kBatch; ++i)
    std::printf("%-6.*s %s\n", static_cast<int>(keys[i].size()), keys[i].data(),
                verdicts[i] == sluice::Verdict::distinct ? "distinct" : "duplicate");
}

int main() {
  try {
    // Planned for a million keys; one new key in a million may be taken for a duplicate.
    sluice::AnyFilter filter = sluice::make_filter("bloom", {.keys = 1'000'000, .fpr = 1e-6});
    const sluice::Hasher hasher(sluice::HashKind::xxh3, sluice::Secret::random());
    judge(filter, hasher, {"apple", "pear", "apple", "plum"});

    // The snapshot holds the filter and the hash with its secret: one is no use without the other.
    sluice::BytesEncoder bytes;
    sluice::write_snapshot(hasher, filter, {{"made by", "embed"}}, bytes);
    std::printf("-- a restart\n");

    sluice::BytesDecoder from(bytes.written());
    sluice::Snapshot snapshot = sluice::read_snapshot(from);
    judge(snapshot.filter, snapshot.hasher, {"plum", "cherry", "pear", "cherry"});
    std::printf("%llu keys held\n", static_cast<unsigned long long>(snapshot.filter.stats().keys));
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
