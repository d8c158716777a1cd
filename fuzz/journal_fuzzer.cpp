// Hostile journals: what is read must be written again as the same bytes, and be read to the same
// end when it is cut off where it was torn. As in snapshot_fuzzer.cpp, the mutator repairs checksums.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/snapshot/journal.hpp"
#include "tests/support/journal_repair.hpp"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace sluice;

constexpr std::uint64_t kIdentity = 0x5EED;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 16 != 0)
    testing_support::repair_journal(std::as_writable_bytes(std::span(data, size)), kIdentity);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  BytesEncoder again;
  JournalWriter writer(kIdentity, again);
  std::uint64_t events = 0;
  JournalEnd end;
  try {
    BytesDecoder from(bytes);
    end = read_journal(
        from, kIdentity,
        [&](const JournalRecord& record) {
          require(record.times.empty() || record.times.size() == record.digests.size());
          writer.append(record.digests, record.times, record.sections, again);
          events += record.digests.size();
        },
        understands_all);
  } catch (const CorruptSnapshot&) {
    return 0;  // anything else that is thrown is a finding
  } catch (const JournalGap&) {
    return 0;
  }
  require(end.bytes + end.torn_bytes == size && end.events == events);
  if (end.bytes == 0) return 0;
  // There is one way to write a record; without events it may still say that they have times.
  BytesDecoder cut(bytes.first(end.bytes));
  const JournalEnd same = read_journal(
      cut, kIdentity, [](const JournalRecord&) {}, understands_all);
  require(same.records == end.records && same.torn_bytes == 0 && same.checksum == end.checksum);
  BytesDecoder written(again.written());
  const JournalEnd copied = read_journal(
      written, kIdentity, [](const JournalRecord&) {}, understands_all);
  require(copied.records == end.records && copied.events == end.events && copied.torn_bytes == 0);
  return 0;
}
