// What `Seen` costs key by key, against the filter that it holds: each is asked for the same keys, hash
// included. A dump of callgrind for each; tests compare the two.
#include "sluice/seen.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "callgrind.hpp"
#include "options.hpp"
#include "sluice/filters/growing/growing.hpp"
#include "sluice/window/window.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kFill = 20'000, kKeys = 5'000;

// Numbered keys, of which every third repeats one of the thousand before it.
std::vector<std::string> keys_of(std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i)
    keys.push_back(fmt::format("user-{:012}", i % 3 == 2 && i > 1000 ? i - 1000 : i));
  return keys;
}

Seen::Time time_of(std::size_t number) {
  return Seen::Time(std::chrono::seconds(1'700'000'000) + number * std::chrono::milliseconds(10));
}

// Calls act(seen, key, time) for all keys, and counts the last of them.
template <class Act>
void count(const char* name, const char* who, const Seen::Options& options, Act act) {
  Seen seen(options);
  const std::vector<std::string> keys = keys_of(kFill + kKeys);
  CALLGRIND_START_INSTRUMENTATION;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i == kFill) CALLGRIND_TOGGLE_COLLECT;
    act(seen, keys[i], time_of(i));
  }
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_STOP_INSTRUMENTATION;
  const std::string what = fmt::format("{}\t{}\t{}", name, who, kKeys);
  CALLGRIND_DUMP_STATS_AT(what.c_str());
}

template <class Typed>
void compare(const char* name, const Seen::Options& options, Typed typed) {
  count(name, "seen", options, [](Seen& seen, const std::string& key, Seen::Time when) {
    static_cast<void>(seen.first(key, when));
  });
  count(name, "typed", options, typed);
}

}  // namespace

void guard_seen() {
  compare("every key", {.seed = 1}, [](Seen& seen, const std::string& key, Seen::Time) {
    static_cast<void>(seen.filter().as<Growing>()->observe(seen.hasher().digest(key)));
  });
  compare("window of keys", {.window = 10'000, .seed = 1},
          [](Seen& seen, const std::string& key, Seen::Time) {
            static_cast<void>(seen.filter().window()->observe(seen.hasher().digest(key)));
          });
  compare("window of time", {.window = std::chrono::minutes(1), .rate = 100, .seed = 1},
          [](Seen& seen, const std::string& key, Seen::Time when) {
            Window& window = *seen.filter().window();
            window.arrive(when.time_since_epoch().count());
            static_cast<void>(window.observe(seen.hasher().digest(key)));
          });
}

}  // namespace sluice::bench
