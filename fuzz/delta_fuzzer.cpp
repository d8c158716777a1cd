// Hostile deltas: applied to nothing and to a snapshot; what is accepted must make a snapshot that
// a delta leads to again. As in snapshot_fuzzer.cpp, the mutator repairs checksums, and the reader
// is the one that ships.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "fuzz/delta_base.hpp"
#include "sluice/base/error.hpp"
#include "sluice/snapshot/delta.hpp"
#include "tests/support/delta_repair.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace sluice;

constexpr std::size_t kMost = std::size_t{8} << 20;

struct TooMuch {};

// A few bytes may stand for megabytes of zeros, as they should; here that is only slow.
class Sink final : public Encoder {
 public:
  void bytes(std::span<const std::byte> data) override {
    if (bytes_.size() + data.size() > kMost) throw TooMuch();
    bytes_.insert(bytes_.end(), data.begin(), data.end());
  }
  const std::vector<std::byte>& written() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

const std::vector<std::byte>& base() {
  static const std::vector<std::byte> bytes = fuzzing::version_of(fuzzing::kBase, 0);
  return bytes;
}

std::uint64_t identity_of(const std::vector<std::byte>& snapshot) {
  return BytesDecoder(std::span(snapshot).last(8)).u64();
}

void require(bool holds) {
  if (!holds) std::abort();
}

void try_on(const StoredBytes* old_one, std::span<const std::byte> delta) {
  Sink made;
  try {
    apply_delta(old_one, BytesInMemory(delta, "delta"), made);
  } catch (const Error&) {
    return;  // a refusal; anything else that is thrown is a finding
  } catch (const TooMuch&) {
    return;
  }
  const BytesInMemory result(made.written(), "made");
  Sink again, back;
  write_delta(nullptr, result, again);
  apply_delta(nullptr, BytesInMemory(again.written(), "again"), back);
  require(back.written() == made.written());
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 16 != 0)
    testing_support::repair_delta(std::as_writable_bytes(std::span(data, size)),
                                  identity_of(base()));
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try_on(nullptr, bytes);
  const BytesInMemory old_one(base(), "old");
  try_on(&old_one, bytes);
  return 0;
}
