// A program that lets each event through once: one key at a time, many at once, and on from where it
// stopped.
#include <sluice/sluice.hpp>

#include <array>
#include <cstdio>
#include <string_view>

int main() {
  try {
    // Remembers every key, in memory that grows with them. One new key in a million may be lost.
    sluice::Seen seen({.fpr = 1e-6});
    for (const char* fruit : {"apple", "pear", "apple"})
      std::printf("%-6s %s\n", fruit, seen.first(fruit) ? "is new" : "was seen");

    // Many at once are faster: their places in memory are fetched together.
    const std::array<std::string_view, 3> batch = {"plum", "pear", "plum"};
    std::array<sluice::Verdict, 3> verdicts;
    seen.observe(batch, verdicts);
    for (std::size_t i = 0; i < batch.size(); ++i)
      std::printf("%-6s %s\n", batch[i].data(),
                  verdicts[i] == sluice::Verdict::distinct ? "is new" : "was seen");

    // What it remembers, and the secret of its hash, as bytes.
    const std::vector<std::byte> bytes = seen.save();
    sluice::Seen restarted = sluice::Seen::load(bytes);
    std::printf("-- a restart\n");
    for (const char* fruit : {"plum", "cherry"})
      std::printf("%-6s %s\n", fruit, restarted.first(fruit) ? "is new" : "was seen");
    std::printf("%llu keys held by '%s'\n", static_cast<unsigned long long>(restarted.stats().keys),
                seen.plan()->choice().filter.c_str());
  } catch (const sluice::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
