// Writes the seeds of the snapshot fuzzer: one tiny snapshot a kind of filter, empty and with keys.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "connectors/files/state_file.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/window/window.hpp"

namespace {

constexpr const char* kFilters[] = {
    "none",
    "exact",
    "bloom,layout=classic,bytes=64,probes=3",
    "bloom,layout=blocked,bytes=64,probes=8",
    "bloom,layout=blocked,bytes=192,probes=16",
    "growing,slot=16,keys=1,fpr=0.05",
    "growing,slot=32,keys=1",
    "growing,slot=64,keys=1",
    "cohort",
    "counting,bytes=64,probes=3",
    "dynamic,keys=5,fpr=0.1,layout=matrix",
    "dynamic,keys=5,fpr=0.1,forget=yes",
    "dynamic,keys=5,fpr=0.1,tighten=0.5",
    "stable,bytes=64,probes=2,decrements=4,max=2",
    "reservoir,bytes=64,filters=3,variant=paper",
    "reservoir,bytes=64,filters=3,resets=1",
    "sharded,shards=2,of=bloom,layout=blocked,probes=8,fpr=0.1",
    "sharded,shards=3,of=cohort,slot=16,fpr=0.05",
};

using namespace sluice;

void save(const std::filesystem::path& path, const Hasher& hasher, const AnyFilter& filter,
          const Labels& labels) {
  StateFile(path).save(hasher, filter, labels);
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
}

void write_seed(const std::filesystem::path& path, const char* filter, int keys) {
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

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("usage: snapshot_seeds DIRECTORY\n", stderr);
    return 2;
  }
  int number = 0;
  for (const char* filter : kFilters)
    for (const int keys : {0, 12})
      write_seed(std::filesystem::path(arguments[1]) / ("seed" + std::to_string(number++)), filter,
                 keys);
  write_window_seeds(arguments[1]);
}
