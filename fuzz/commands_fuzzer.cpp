// Commands of the server layer on a primary, whose effects a replica and a reloaded copy follow: whatever
// comes, the three stay equal, and every command has one reply.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "apps/redis/testing_random.hpp"
#include "sluice/base/error.hpp"

namespace {

using namespace sluice::server;

// Bytes, or zeros when they are used up.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool empty() const { return bytes_.empty(); }
  unsigned next() {
    if (bytes_.empty()) return 0;
    const unsigned byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  std::string text() {
    std::string all;
    for (unsigned left = next() % 32; left > 0 && !empty(); --left)
      all += static_cast<char>(next());
    return all;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// A word that some command knows, a small name, or anything.
std::string word(Input& input, std::int64_t now) {
  static const std::vector<std::string> kWords{
      "WINDOW", "FPR",   "EXPECT", "RATE", "MEMORY", "SLACK",    "FILTER",  "REFRESH", "SEED",
      "AUDIT",  "ITEMS", "AT",     "TTL",  "TOKEN",  "NOCREATE", "FOREVER", "10s",     "100",
      "1m",     "day",   "0.01",   "1e-6", "1/1",    "16KiB",    "1",       "1000",    "50"};
  const unsigned kind = input.next();
  if (kind < 100) return kWords[kind % kWords.size()];
  if (kind < 130) return std::string(sluice::catalogue()[kind % sluice::catalogue().size()].name);
  if (kind < 160)
    return std::to_string(now - 5'000 + 100 * static_cast<std::int64_t>(input.next()));
  if (kind < 240) return "i" + std::to_string(kind % 20);
  return input.text();
}

void run_one(Input& input, Followed& servers) {
  TestHost& primary = servers.primary;
  const unsigned which = input.next();
  primary.now += static_cast<std::int64_t>(input.next()) * (which >= 250   ? -10
                                                            : which >= 240 ? 900
                                                                           : 1);
  std::vector<std::string> words{commands()[which % commands().size()].name,
                                 "k" + std::to_string(input.next() % 4)};
  for (unsigned left = input.next() % 16; left > 0; --left)
    words.push_back(word(input, primary.now));
  FailingMalloc::calls = 0;
  FailingMalloc::fail_at = input.next() % 32;
  const std::string reply = primary.call(words);
  FailingMalloc::fail_at = 0;
  servers.tell();
  if (which % 7 == 0) servers.reload_third();
  std::string problem = servers.difference(words[1]);
  if (reply.starts_with("not one reply")) problem = reply;
  if (problem.empty()) return;
  std::fprintf(stderr, "%s -> %s: %s\n", text_of(words).c_str(), reply.c_str(), problem.c_str());
  std::abort();
}

// An effect of anybody: refused, or done.
void follow_any(Input& input, TestHost& host) {
  std::string effect;
  while (!input.empty() && effect.size() < 4'096) effect += static_cast<char>(input.next());
  host.follow({"k0", effect, {"k1"}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  Followed servers;
  servers.primary.room_left = 4 << 20;
  servers.primary.settings.key_memory = 4 << 20;
  const bool hostile = input.next() % 8 == 7;
  for (int i = 0; i < 64 && !input.empty(); ++i) {
    run_one(input, servers);
    if (hostile && i == 2) follow_any(input, servers.replica);
  }
  return 0;
}
