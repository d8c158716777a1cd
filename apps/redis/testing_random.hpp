// Random commands, and servers that must stay equal whatever these do: for tests and fuzz targets.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "apps/redis/testing_host.hpp"
#include "apps/redis/words.hpp"
#include "sluice/filters/catalogue.hpp"

namespace sluice::server {

inline std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + (word.size() > 40 ? word.substr(0, 40) + "..." : word);
  return text;
}

// A primary, a replica with other settings and, if wanted, another allocator, and a third that is reloaded from the
// bytes of its own entries now and then.
struct Followed {
  explicit Followed(bool other_allocator = false) : replica(!other_allocator) {
    for (TestHost* const each : {&replica, &third}) {
      each->follows = true;
      each->settings = {.default_fpr = 0.01, .key_memory = 1, .claims = 1};
      each->now = 5;
    }
  }

  std::string run(const std::vector<std::string>& words, bool reload) {
    const std::string reply = primary.call(words);
    tell();
    if (reload) reload_third();
    return reply;
  }
  void tell() {
    const std::uint64_t failing = std::exchange(FailingMalloc::fail_at, 0);
    for (const TestHost::Told& told : primary.told)
      for (TestHost* const each : {&replica, &third})
        if (const std::string reply = each->follow(told); reply != "+OK" && problem.empty())
          problem = "an effect was answered with " + reply;
    primary.told.clear();
    FailingMalloc::fail_at = failing;
  }
  void reload_third() {
    for (auto& [name, slot] : third.keys)
      if (slot.entry) slot.entry = entry_of(bytes_of(*slot.entry), third.memory());
  }
  // Empty if the key, or all, are equal.
  std::string difference(const std::string& only = "") {
    if (!problem.empty()) return problem;
    for (TestHost* const each : {&replica, &third}) {
      const char* const who = each == &replica ? "the replica" : "the reloaded one";
      for (const auto& [name, slot] : primary.keys)
        if (!only.empty() && name != only)
          continue;
        else if (const std::string what = difference(slot, *each, name); !what.empty())
          return fmt::format("{}: {} {}", who, name, what);
      if (each->keys.size() != primary.keys.size()) return fmt::format("{} has more keys", who);
    }
    return "";
  }

  TestHost primary, replica, third;
  std::string problem;

 private:
  static std::string where(const std::string& a, const std::string& b) {
    const auto at = std::ranges::mismatch(a, b).in1 - a.begin();
    return fmt::format("at byte {} of {} and {}; ", at, a.size(), b.size());
  }
  static std::string difference(const TestHost::Slot& slot, TestHost& other,
                                const std::string& name) {
    const auto found = other.keys.find(name);
    if (found == other.keys.end()) return "is missing";
    if (!slot.entry != !found->second.entry) return "is of another type";
    if (slot.entry && bytes_of(*slot.entry) != bytes_of(*found->second.entry))
      return "has other bytes: " + where(bytes_of(*slot.entry), bytes_of(*found->second.entry)) +
             other.call({"SLUICE.INFO", name});
    if (slot.expiry != found->second.expiry)
      return fmt::format("expires at {} instead of {}", found->second.expiry.value_or(-1),
                         slot.expiry.value_or(-1));
    return "";
  }
};

class RandomCommands {
 public:
  explicit RandomCommands(std::uint64_t seed) : random_(seed) {}

  // Most steps are small; some jump ahead by up to a day, some go back.
  void set_clock(TestHost& host) {
    const auto kind = below(100);
    if (kind < 60) host.now += static_cast<std::int64_t>(below(50));
    if (kind >= 90 && kind < 97) host.now += static_cast<std::int64_t>(below(20'000));
    if (kind == 97) host.now += static_cast<std::int64_t>(below(86'400'000));
    if (kind >= 98) host.now -= static_cast<std::int64_t>(below(30'000));
    now_ = host.now;
  }
  // DEL, EXPIRE, PERSIST, another type.
  void act_as_person(Followed& servers) {
    if (below(100) >= 4) return;
    const std::string name = key();
    if (below(2) == 0) {
      servers.primary.erase(name);
      servers.tell();
      return;
    }
    const bool persists = below(2) == 0;
    const std::int64_t ms = now_ + 1 + static_cast<std::int64_t>(below(100'000));
    for (TestHost* const each : {&servers.primary, &servers.replica, &servers.third})
      if (const auto found = each->keys.find(name); found != each->keys.end())
        found->second.expiry = persists ? std::nullopt : std::optional(ms);
  }
  bool reloads() { return below(20) == 0; }

  std::vector<std::string> next() {
    const auto kind = below(100);
    if (kind < 12) return reserve();
    if (kind < 30) return with_at({"SLUICE.ADD", key(), item()});
    if (kind < 45) return with_items({"sluice.madd", key()});
    if (kind < 52) return insert();
    if (kind < 55) return with_at({"SLUICE.EXISTS", key(), item()});
    if (kind < 57) return with_items({"SLUICE.MEXISTS", key()});
    if (kind < 61) return {"SLUICE.FORGET", key(), item()};
    if (kind < 63) return with_items({"SLUICE.MFORGET", key()});
    if (kind < 73)
      return with_at({"SLUICE.CLAIM", key(), item(), "TTL", lease(), "TOKEN", token()});
    if (kind < 79) {
      auto words = with_at({"SLUICE.MCLAIM", key(), "TTL", lease(), "TOKEN", token()});
      words.push_back("ITEMS");
      return with_items(std::move(words));
    }
    if (kind < 85) return with_at({"SLUICE.CONFIRM", key(), item(), "TOKEN", token()});
    if (kind < 88) {
      auto words = with_at({"SLUICE.MCONFIRM", key(), "TOKEN", token()});
      words.push_back("ITEMS");
      return with_items(std::move(words));
    }
    if (kind < 91) return {"SLUICE.RELEASE", key(), item(), "TOKEN", token()};
    if (kind < 93) return with_items({"SLUICE.MRELEASE", key(), "TOKEN", token(), "ITEMS"});
    if (kind < 96) return {"SLUICE.MERGE", key(), key()};
    if (kind < 97) return {"SLUICE.MERGE", key(), key(), key()};
    if (kind < 98) return {"SLUICE.INFO", key()};
    return {"SLUICE.EFFECT", key(), "x"};
  }

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  template <class T, std::size_t kSize>
  T one_of(const T (&all)[kSize]) {
    return all[below(kSize)];
  }

 private:
  std::string key() { return "k" + std::to_string(below(10)); }
  // Few enough that they come again.
  std::string item() { return "i" + std::to_string(below(below(4) == 0 ? 5'000 : 60)); }
  std::string token() { return "t" + std::to_string(below(3)); }
  std::string lease() {
    static constexpr const char* kLeases[] = {"1", "50", "500", "5000", "3600000", "31622400000"};
    return one_of(kLeases);
  }
  std::vector<std::string> with_at(std::vector<std::string> words) {
    if (below(3) != 0) return words;
    static constexpr std::int64_t kOffsets[] = {0, 0, -1, 1, -100, 100, -5'000, 4'000, -100'000};
    words.push_back("AT");
    words.push_back(std::to_string(now_ + one_of(kOffsets)));
    return words;
  }
  std::vector<std::string> with_items(std::vector<std::string> words) {
    const std::uint64_t count = below(10) == 0 ? 1'300 : 1 + below(20);
    for (std::uint64_t i = 0; i < count; ++i) words.push_back(item());
    return words;
  }
  std::vector<std::string> options() {
    std::vector<std::string> words;
    const auto add = [&](std::initializer_list<std::string> more) {
      words.insert(words.end(), more);
    };
    static constexpr const char* kWindows[] = {"5s",   "1m",  "10m",   "100",    "5000",
                                               "hour", "day", "250ms", "FOREVER"};
    const bool windowed = below(4) != 0;
    if (windowed) add({"WINDOW", one_of(kWindows)});
    if (below(2) == 0) add({"SEED", std::to_string(below(3))});
    if (below(5) == 0) add({"REFRESH"});
    if (below(5) == 0) add({"AUDIT", below(2) == 0 ? "1/1" : "1/16"});
    static constexpr const char* kErrors[] = {"0.1", "1e-3", "1e-6", "1%"};
    if (below(2) == 0) add({"FPR", one_of(kErrors)});
    const bool expects = below(2) == 0;
    if (expects) add({"EXPECT", std::to_string(1 + below(3'000))});
    if (below(12) == 0) add({"RATE", "100/s"});
    if (below(5) == 0) add({"MEMORY", below(2) == 0 ? "16KiB" : "100KB"});
    if (below(12) == 0) add({"SLACK", "0.1"});
    if (below(2) == 0) {
      const std::string name(catalogue()[below(catalogue().size())].name);
      add({"FILTER", name});
      // Otherwise they are made for ten million items, and all of them are compared after each command.
      if (!expects && (name == "bloom" || name == "counting")) add({"EXPECT", "3000"});
    }
    return words;
  }
  std::vector<std::string> reserve() {
    std::vector<std::string> words{"SLUICE.RESERVE", key()};
    const auto more = options();
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> insert() {
    std::vector<std::string> words{"SLUICE.INSERT", key()};
    // With others than its own an existing key refuses it.
    if (below(2) == 0) return with_items_of(std::move(words));
    const auto more = options();
    words.insert(words.end(), more.begin(), more.end());
    return with_items_of(std::move(words));
  }
  std::vector<std::string> with_items_of(std::vector<std::string> words) {
    if (below(10) == 0) words.push_back("NOCREATE");
    words = with_at(std::move(words));
    words.push_back("ITEMS");
    return with_items(std::move(words));
  }

  std::mt19937_64 random_;
  std::int64_t now_ = 0;
};

}  // namespace sluice::server
