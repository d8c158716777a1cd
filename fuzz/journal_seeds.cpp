// Writes the seeds of the journal fuzzer: records with and without times, sections and events.
#include <filesystem>
#include <vector>

#include "fuzz/seed_file.hpp"
#include "sluice/snapshot/journal.hpp"

namespace {

using namespace sluice;

constexpr std::uint64_t kIdentity = 0x5EED;  // as in journal_fuzzer.cpp

void write_all(const std::filesystem::path& folder) {
  const std::vector<Digest> digests = {{1, 2}, {3, 4}, {1, 2}};
  const std::vector<Nanoseconds> times = {1'700'000'000'000'000'000, 1'700'000'001'000'000'000,
                                          1'699'999'999'000'000'000};
  const Sections sections = {{"offsets", true, std::vector<std::byte>(9)}, {"note", false, {}}};
  BytesEncoder head;
  JournalWriter(kIdentity, head);
  fuzzing::write_seed_file(folder / "head", head.written());
  for (const bool timed : {false, true}) {
    BytesEncoder to;
    JournalWriter writer(kIdentity, to);
    const auto when = timed ? std::span(times) : std::span<const Nanoseconds>();
    writer.append(digests, when, sections, to);
    writer.append(std::span(digests).first(1), when.first(timed ? 1 : 0), {}, to);
    writer.append({}, {}, sections, to);
    fuzzing::write_seed_file(folder / (timed ? "timed" : "untimed"), to.written());
    fuzzing::write_seed_file(folder / (timed ? "torn_timed" : "torn"),
                             to.written().first(to.written().size() - 5));
  }
}

}  // namespace

int main(int count, char** arguments) {
  return fuzzing::write_seeds(count, arguments, write_all);
}
