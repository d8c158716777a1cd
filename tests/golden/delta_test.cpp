// Golden deltas: what older builds wrote must always give the same snapshot. What a build writes
// today may be shorter, and zstd may write other bytes, so only the way back is pinned.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "connectors/files/state_file.hpp"
#include "connectors/files/stored_file.hpp"
#include "sluice/snapshot/delta.hpp"
#include "sluice/snapshot/delta_coding.hpp"
#include "tests/support/snapshot_bytes.hpp"

namespace sluice {
namespace {

struct Golden {
  const char* base;  // a golden snapshot
  const char* delta;
  DeltaCoding coding;
};

constexpr Golden kGolden[] = {
    {"bloom-1.snapshot", "bloom_gaps-1.delta", DeltaCoding::gaps},
    {"exact-1.snapshot", "exact_zstd-1.delta", DeltaCoding::zstd},
};

std::string path_of(const char* file) {
  return (std::filesystem::path(SLUICE_GOLDEN_DIR) / file).string();
}

// The base with a few more keys.
std::vector<std::byte> later(const char* base) {
  Snapshot snapshot = load_snapshot_file(path_of(base));
  for (int number = 40; number < 45; ++number) {
    const Digest digest = snapshot.hasher.digest("key " + std::to_string(number));
    snapshot.filter.insert({&digest, 1});
  }
  return testing_support::snapshot_bytes(snapshot.hasher, snapshot.filter, snapshot.labels);
}

void write_missing(const Golden& golden) {
  if (std::getenv("SLUICE_GOLDEN_WRITE") == nullptr ||
      std::filesystem::exists(path_of(golden.delta)))
    return;
  BytesEncoder to;
  const StoredFile base(path_of(golden.base));
  write_delta(&base, BytesInMemory(later(golden.base), "later"), to);
  std::ofstream(path_of(golden.delta), std::ios::binary)
      .write(reinterpret_cast<const char*>(to.written().data()),
             static_cast<std::streamsize>(to.written().size()));
}

TEST(GoldenDelta, LeadsToTheSameSnapshot) {
  for (const Golden& golden : kGolden) {
    write_missing(golden);
    const StoredFile base(path_of(golden.base)), delta(path_of(golden.delta));
    BytesEncoder to;
    apply_delta(&base, delta, to);
    EXPECT_EQ(to.take(), later(golden.base)) << golden.delta;
    // The only chunk stands behind the header: fixed fields, snapshot's header, checksum, length.
    std::byte length[4], coding[1];
    delta.read(22, length);
    delta.read(26 + BytesDecoder(length).u32() + 8 + 4, coding);
    EXPECT_EQ(coding[0], static_cast<std::byte>(golden.coding)) << golden.delta;
  }
}

}  // namespace
}  // namespace sluice
