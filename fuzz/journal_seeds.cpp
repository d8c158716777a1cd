// Writes the seeds of the journal fuzzer: records with and without times, sections and events.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "sluice/snapshot/journal.hpp"

namespace {

using namespace sluice;

constexpr std::uint64_t kIdentity = 0x5EED;  // as in journal_fuzzer.cpp

void write(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: journal_seeds DIRECTORY\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  const std::vector<Digest> digests = {{1, 2}, {3, 4}, {1, 2}};
  const std::vector<Nanoseconds> times = {1'700'000'000'000'000'000, 1'700'000'001'000'000'000,
                                          1'699'999'999'000'000'000};
  const Sections sections = {{"offsets", true, std::vector<std::byte>(9)}, {"note", false, {}}};
  BytesEncoder head;
  JournalWriter(kIdentity, head);
  write(folder / "head", head.written());
  for (const bool timed : {false, true}) {
    BytesEncoder to;
    JournalWriter writer(kIdentity, to);
    const auto when = timed ? std::span(times) : std::span<const Nanoseconds>();
    writer.append(digests, when, sections, to);
    writer.append(std::span(digests).first(1), when.first(timed ? 1 : 0), {}, to);
    writer.append({}, {}, sections, to);
    write(folder / (timed ? "timed" : "untimed"), to.written());
    write(folder / (timed ? "torn_timed" : "torn"), to.written().first(to.written().size() - 5));
  }
}
