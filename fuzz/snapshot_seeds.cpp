// Writes the seeds of the snapshot fuzzer: one tiny snapshot a kind of filter, empty and with keys.
#include <cstdio>
#include <filesystem>
#include <string>

#include "connectors/files/state_file.hpp"
#include "sluice/filters/catalogue.hpp"

namespace {

constexpr const char* kFilters[] = {
    "none",
    "exact",
    "bloom,layout=classic,bytes=64,probes=3",
    "bloom,layout=blocked,bytes=64,probes=8",
    "bloom,layout=blocked,bytes=192,probes=16",
};

void write_seed(const std::filesystem::path& path, const char* filter, int keys) {
  using namespace sluice;
  const HashKind kind = keys == 0 ? HashKind::xxh3 : HashKind::highway;
  const Hasher hasher(kind, Secret::from_seed(1));
  AnyFilter made = make_filter(filter, {.keys = 20});
  for (int number = 0; number < keys; ++number) {
    const Digest digest = hasher.digest(std::to_string(number));
    made.insert({&digest, 1});
  }
  Labels labels;
  if (keys != 0) labels = {{"format", "csv"}, {"key", "user"}};
  StateFile(path).save(hasher, made, labels);
  std::filesystem::remove(path.string() + ".previous");
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
}
