// Writes the seeds of the snapshot fuzzer: one small snapshot per kind of
// filter and layout, empty and with keys.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "connectors/files/state_file.hpp"
#include "fuzz/seed_file.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/snapshot/header.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/snapshot_repair.hpp"

namespace {

using namespace sluice;

void save(const std::filesystem::path& path, const Hasher& hasher, const AnyFilter& filter,
          const Labels& labels, const Sections& sections = {}) {
  StateFile(path).save([&](Encoder& to) { write_snapshot(hasher, filter, labels, to, sections); });
  std::filesystem::remove(path.string() + ".previous");
}

// A time window with several stages, and a count window of one that repeats restart.
void write_window_seeds(const std::filesystem::path& folder) {
  constexpr Nanoseconds kSecond = 1'000'000'000;
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  Window time = Window::make(
      {.spec = {WindowSpec::Kind::time, 100 * kSecond}, .filter = "cohort,slot=24", .keys = 8});
  Window count = Window::make({.spec = {WindowSpec::Kind::count, 20},
                               .anchor = Anchor::refreshed,
                               .filter = "cohort,slot=16"});
  for (int number = 0; number < 30; ++number) {
    const Digest digest = hasher.digest(std::to_string(number));
    const Nanoseconds at = (1'700'000'000 + 2 * number) * kSecond;
    Verdict verdict{};
    bool late = false;
    if (time.judge({&digest, 1}, {&at, 1}, {&verdict, 1}, {&late, 1}) == 0) std::abort();
    count.insert(digest);
  }
  save(folder / "window_time", hasher, AnyFilter(std::move(time)), {{"event-time", "2"}});
  save(folder / "window_count", hasher, AnyFilter(std::move(count)), {});

  Window listed = Window::make({.spec = {WindowSpec::Kind::time, 100 * kSecond}, .listed = true});
  const std::vector<Digest> digests = {{1, 2}, {3, 4}};
  const std::vector<Nanoseconds> times = {1'700'000'000 * kSecond, 1'700'000'001 * kSecond};
  std::vector<Verdict> verdicts(2);
  bool late[2];
  if (listed.judge(digests, times, verdicts, late) != 2) std::abort();
  save(folder / "window_listed", hasher, AnyFilter(std::move(listed)), {},
       {{"offsets", true, std::vector<std::byte>(5)}, {"audit", false, {}}});
}

void write_seed(const std::filesystem::path& path, std::string_view filter, int keys) {
  const HashKind kind = keys == 0 ? HashKind::xxh3 : HashKind::highway;
  const Hasher hasher(kind, Secret::from_seed(1));
  AnyFilter made = make_filter(filter, {.keys = 20});
  for (int number = 0; number < keys; ++number) {
    const Digest digest = hasher.digest(std::to_string(number));
    made.insert({&digest, 1});
  }
  Labels labels;
  if (keys != 0) labels = {{"format", "csv"}, {"key", "user"}};
  save(path, hasher, made, labels);
}

// A state that claims more keys than its counters can hold. Keys that were taken back one by one
// made its count run below zero, once.
void write_few_counters(const std::filesystem::path& path) {
  constexpr std::size_t kKeysAt = 28;  // in the filter's fields: the last of them
  const Hasher hasher(HashKind::xxh3, Secret::from_seed(1));
  BytesEncoder to;
  write_snapshot(hasher, make_filter("counting,bytes=64,probes=3", {.keys = 20}), {}, to);
  std::vector<std::byte> bytes = to.take();
  BytesDecoder from(bytes);
  const SnapshotHeader header = read_header(from);
  bytes[header.fields_at + kKeysAt + 2] = std::byte{1};
  testing_support::repair_snapshot(bytes);
  fuzzing::write_seed_file(path, bytes);
}

void write_all(const std::filesystem::path& folder) {
  for (const FilterInfo& filter : catalogue())
    for (const GoldenSample& sample : filter.row->golden)
      for (const int keys : {0, 12})
        write_seed(folder / (std::string(sample.file) + (keys == 0 ? "_empty" : "")), sample.filter,
                   keys);
  write_window_seeds(folder);
  write_few_counters(folder / "counting_few_counters");
}

}  // namespace

int main(int count, char** arguments) {
  return fuzzing::write_seeds(count, arguments, write_all);
}
