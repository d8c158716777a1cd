// Writes the seeds of the delta fuzzer: deltas in every coding, against the fuzzer's base and
// whole.
#include <filesystem>
#include <string>

#include "fuzz/delta_base.hpp"
#include "fuzz/seed_file.hpp"
#include "sluice/snapshot/delta.hpp"

namespace {

using namespace sluice;

void write(const std::filesystem::path& path, const std::vector<std::byte>* old_one,
           const std::vector<std::byte>& new_one) {
  BytesEncoder to;
  const std::vector<std::byte> none;
  const BytesInMemory base(old_one == nullptr ? none : *old_one, "old");
  write_delta(old_one == nullptr ? nullptr : &base, BytesInMemory(new_one, "new"), to);
  fuzzing::write_seed_file(path, to.written());
}

void write_all(const std::filesystem::path& folder) {
  const auto base = fuzzing::version_of(fuzzing::kBase, 0);
  write(folder / "same", &base, base);
  write(folder / "next", &base, fuzzing::version_of(fuzzing::kBase, 1));
  write(folder / "far", &base, fuzzing::version_of(fuzzing::kBase, 100));
  write(folder / "whole", nullptr, base);
  write(folder / "whole_none", nullptr, fuzzing::version_of("none", 0));
  write(folder / "whole_exact", nullptr, fuzzing::version_of("exact", 1));
  write(folder / "whole_full", nullptr,
        fuzzing::version_of("bloom,layout=blocked,bytes=64,probes=8", 60));
}

}  // namespace

int main(int count, char** arguments) {
  return fuzzing::write_seeds(count, arguments, write_all);
}
