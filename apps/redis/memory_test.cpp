// Memory of the commands: what is counted, and what happens when there is none. Then hostile bytes.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "apps/redis/testing_random.hpp"
#include "sluice/base/error.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/snapshot_repair.hpp"

namespace sluice::server {
namespace {

using testing_support::count_of;
using Words = std::vector<std::string>;

std::uint64_t counted(TestHost& host) {
  std::uint64_t bytes = 0;
  for (const auto& [name, slot] : host.keys) bytes += slot.entry->bytes();
  return bytes;
}

TEST(ServerMemory, EntriesTakeWhatTheySay) {
  RandomCommands commands(2);
  TestHost host;
  for (int i = 0; i < count_of(300, 1'500, 20'000); ++i) {
    commands.set_clock(host);
    const Words words = commands.next();
    host.call(words);
    ASSERT_EQ(counted(host), host.memory().taken()) << i << ": " << text_of(words);
  }
}

bool is_answer(const std::string& reply) {
  return !reply.starts_with("-") || reply.starts_with("-OOM ");
}

Words many(Words words, int from, int count) {
  for (int i = from; i < from + count; ++i) words.push_back("i" + std::to_string(i));
  return words;
}

// Each command with what comes before it.
struct Script {
  std::vector<Words> before;
  Words last;
};

std::vector<Script> scripts() {
  std::vector<Script> all;
  const std::vector<Words> kinds{{},
                                 {"WINDOW", "10s"},
                                 {"WINDOW", "200"},
                                 {"WINDOW", "10s", "EXPECT", "500", "REFRESH"},
                                 {"WINDOW", "10s", "EXPECT", "100", "MEMORY", "16KiB"},
                                 {"EXPECT", "500"},
                                 {"WINDOW", "10s", "AUDIT", "1/1"}};
  for (const Words& kind : kinds) {
    Words reserve{"SLUICE.RESERVE", "k", "SEED", "1"};
    reserve.insert(reserve.end(), kind.begin(), kind.end());
    const bool timed = !kind.empty() && kind.size() > 1 && kind[1] == "10s";
    const std::string at = timed ? "AT" : "", ms = "1700000002000";
    const Words claim{"SLUICE.MCLAIM", "k", "TTL", "500", "TOKEN", "t", "ITEMS"};
    const auto add = [&](std::vector<Words> before, Words last) {
      before.insert(before.begin(), reserve);
      all.push_back({std::move(before), std::move(last)});
    };
    all.push_back({{}, reserve});
    Words insert{"SLUICE.INSERT", "k"};
    insert.insert(insert.end(), kind.begin(), kind.end());
    insert.push_back("ITEMS");
    all.push_back({{}, many(insert, 0, 40)});
    add({}, many({"SLUICE.MADD", "k"}, 0, 700));
    add({many({"SLUICE.MADD", "k"}, 0, 30)}, {"SLUICE.ADD", "k", "new"});
    if (timed) add({many({"SLUICE.MADD", "k"}, 0, 200)}, {"SLUICE.ADD", "k", "new", at, ms});
    add({many({"SLUICE.MADD", "k"}, 0, 200)}, many({"SLUICE.MADD", "k"}, 100, 900));
    add({}, many(claim, 0, 3));
    add({many(claim, 0, 130)}, many(claim, 100, 70));
    // Expired claims are dropped before there is no memory for the new one.
    add({many(claim, 0, 64), {"later"}}, many(claim, 100, 70));
    add({many(claim, 0, 20)}, many({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS"}, 0, 25));
    add({many({"SLUICE.MADD", "k"}, 0, 500), many(claim, 600, 20)},
        many({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS"}, 600, 20));
    add({}, many({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS"}, 0, 2));
    add({many(claim, 0, 2)}, many({"SLUICE.MRELEASE", "k", "TOKEN", "t", "ITEMS"}, 0, 3));
    add({many({"SLUICE.MADD", "k"}, 0, 50)}, {"SLUICE.MERGE", "copy", "k"});
    add({many({"SLUICE.MADD", "k"}, 0, 50)}, many({"SLUICE.MFORGET", "k"}, 0, 5));
    add({}, {"SLUICE.INFO", "k"});
  }
  return all;
}

TEST(ServerMemory, EveryAllocationMayFail) {
  const std::uint64_t held = FailingMalloc::held;
  std::uint64_t failures = 0;
  for (const Script& script : scripts())
    for (std::uint64_t fail_at = 1;; fail_at += fail_at < 10 ? 1 : fail_at / 2) {
      Followed servers;
      for (const Words& words : script.before) {
        if (words[0] == "later")
          servers.primary.now += 1'000;
        else
          servers.run(words, false);
      }
      FailingMalloc::calls = 0;
      FailingMalloc::fail_at = fail_at;
      const std::string reply = servers.primary.call(script.last);
      const bool failed = FailingMalloc::calls >= fail_at;
      FailingMalloc::fail_at = 0;
      servers.tell();
      ASSERT_TRUE(failed || !reply.starts_with("-OOM there is no memory for what")) << reply;
      ASSERT_TRUE(!failed || is_answer(reply)) << text_of(script.last) << " -> " << reply;
      ASSERT_EQ(servers.difference(), "")
          << text_of(script.before.empty() ? Words{} : script.before[0]) << "; "
          << text_of(script.last) << " at " << fail_at << " -> " << reply.substr(0, 200);
      // It goes on.
      for (const Words& more :
           {many({"SLUICE.MADD", "k"}, 90, 30),
            many({"SLUICE.MCLAIM", "k", "TTL", "9", "TOKEN", "u", "ITEMS"}, 0, 9)})
        servers.run(more, true);
      ASSERT_EQ(servers.difference(), "") << text_of(script.last) << " at " << fail_at;
      failures += failed;
      if (!failed) break;
    }
  EXPECT_GT(failures, 100u);
  EXPECT_EQ(FailingMalloc::held, held);
}

// Runs the command so that the n-th block is refused, and those that follow if that lasts. False: it asked for less.
bool run_refused(Followed& servers, const Words& words, std::uint64_t n, bool lasts,
                 std::string& reply) {
  FailingMalloc::calls = 0;
  FailingMalloc::fail_at = n;
  FailingMalloc::lasts = lasts;
  reply = servers.primary.call(words);
  const bool failed = FailingMalloc::calls >= n;
  FailingMalloc::fail_at = 0;
  FailingMalloc::lasts = false;
  servers.tell();
  return failed;
}

std::ptrdiff_t count_in(const std::string& reply, const std::string& answer) {
  std::ptrdiff_t count = 0;
  for (std::size_t at = reply.find(answer); at != std::string::npos; ++count)
    at = reply.find(answer, at + answer.size());
  return count;
}

const std::vector<Words> kAudited{
    {"AUDIT", "1/1"},
    {"WINDOW", "10s", "AUDIT", "1/1"},
    {"WINDOW", "5000", "AUDIT", "1/2"},
    {"FILTER", "exact", "AUDIT", "1/1"},
    {"WINDOW", "10s", "AUDIT", "1/1", "EXPECT", "100", "MEMORY", "16KiB"}};

Words reserve_of(const Words& making) {
  Words words{"SLUICE.RESERVE", "k", "SEED", "1"};
  words.insert(words.end(), making.begin(), making.end());
  return words;
}

TEST(ServerMemory, AuditsCostNoItem) {
  constexpr int kItems = 1300;
  int halved = 0;
  for (const Words& making : kAudited)
    for (const bool lasts : {false, true})
      for (std::uint64_t n = 1;; n += n < 30 ? 1 : count_of(n / 4, n / 16, std::uint64_t{1})) {
        Followed servers;
        ASSERT_EQ(servers.run(reserve_of(making), false), "+OK");
        std::string reply;
        const bool failed =
            run_refused(servers, many({"SLUICE.MADD", "k"}, 0, kItems), n, lasts, reply);
        SCOPED_TRACE(text_of(making) + (lasts ? " from " : " at ") + std::to_string(n));
        ASSERT_EQ(servers.difference(), "");
        ASSERT_EQ(count_in(reply, " :0"), 0) << "a new item is no duplicate";
        if (making.back() != "16KiB") {
          ASSERT_EQ(servers.primary({"SLUICE.INFO", "k", "items"}),
                    ":" + std::to_string(count_in(reply, " :1")));
        }
        halved += servers.primary.entry("k")->judge()->audit()->report().doublings > 0;
        // It goes on.
        reply = servers.run(many({"SLUICE.MADD", "k"}, kItems, 200), true);
        ASSERT_EQ(count_in(reply, " :1"), 200);
        ASSERT_EQ(servers.difference(), "");
        if (!failed) break;
      }
  EXPECT_GT(halved, 20);
}

TEST(ServerMemory, AuditsCostNoConfirmation) {
  constexpr int kItems = 700;
  int halved = 0;
  for (const Words& making : kAudited)
    for (const bool lasts : {false, true})
      for (std::uint64_t n = 1;; n += n < 30 ? 1 : count_of(n / 4, n / 16, std::uint64_t{1})) {
        Followed servers;
        servers.run(reserve_of(making), false);
        servers.run(many({"SLUICE.MCLAIM", "k", "TTL", "500", "TOKEN", "t", "ITEMS"}, 0, kItems),
                    false);
        std::string reply;
        const bool failed =
            run_refused(servers, many({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS"}, 0, kItems),
                        n, lasts, reply);
        SCOPED_TRACE(text_of(making) + (lasts ? " from " : " at ") + std::to_string(n));
        ASSERT_EQ(count_in(reply, " :1"), kItems);
        ASSERT_EQ(servers.difference(), "");
        halved += servers.primary.entry("k")->judge()->audit()->report().doublings > 0;
        if (making.back() != "16KiB") {
          ASSERT_EQ(count_in(servers.run(many({"SLUICE.MADD", "k"}, 0, kItems), true), " :0"),
                    kItems);
        }
        ASSERT_EQ(servers.difference(), "");
        if (!failed) break;
      }
  EXPECT_GT(halved, 20);
}

// One item has no memory and is answered all the same; the next one is refused for another reason.
TEST(ServerMemory, WhatIsRefusedForOtherReasonsIsNotTriedByReplicas) {
  int waited = 0;
  for (int items = 0; items < 100; ++items) {
    Followed servers;
    servers.primary.settings.claims = 1;
    servers.run({"SLUICE.RESERVE", "k", "SEED", "1"}, false);
    servers.run(many({"SLUICE.MADD", "k"}, 0, 1 + items), false);
    servers.run({"SLUICE.CLAIM", "k", "a", "TTL", "500", "TOKEN", "t"}, false);
    std::string reply;
    run_refused(servers, {"SLUICE.CONFIRM", "k", "a", "TOKEN", "t"}, 1, true, reply);
    ASSERT_EQ(reply, ":1");
    if (servers.primary.entry("k")->claimed() == 0) continue;
    ++waited;
    run_refused(servers, {"SLUICE.MCLAIM", "k", "TTL", "500", "TOKEN", "t", "ITEMS", "a", "b"}, 1,
                true, reply);
    ASSERT_TRUE(reply.starts_with("[2] :0 -ERR ")) << reply;
    ASSERT_EQ(servers.difference(), "") << items;
  }
  EXPECT_GT(waited, 0);
}

TEST(ServerMemory, RandomFailures) {
  const std::uint64_t held = FailingMalloc::held;
  {
    RandomCommands commands(3);
    Followed servers;
    for (int i = 0; i < count_of(300, 1'500, 20'000); ++i) {
      commands.set_clock(servers.primary);
      const Words words = commands.next();
      FailingMalloc::calls = 0;
      FailingMalloc::fail_at = commands.below(2) == 0 ? 0 : 1 + commands.below(5);
      FailingMalloc::lasts = commands.below(3) == 0;
      const std::string reply = servers.primary.call(words);
      FailingMalloc::fail_at = 0;
      FailingMalloc::lasts = false;
      servers.tell();
      if (commands.reloads()) servers.reload_third();
      ASSERT_EQ(servers.difference(i % 50 == 0 ? "" : words[1]), "")
          << i << ": " << text_of(words) << " -> " << reply.substr(0, 200);
    }
  }
  EXPECT_EQ(FailingMalloc::held, held);
}

// --- Hostile bytes

// Entries of all kinds, with claims and an audit.
std::vector<std::string> snapshots() {
  std::vector<std::string> all;
  for (const FilterInfo& filter : catalogue())
    for (const bool windowed : {false, true}) {
      TestHost host;
      Words reserve{"SLUICE.RESERVE", "k", "FILTER", std::string(filter.name), "AUDIT", "1/1"};
      if (windowed) reserve.insert(reserve.end(), {"WINDOW", "10s"});
      reserve.insert(reserve.end(), {"EXPECT", "20", "FPR", "0.1"});
      if (host.call(reserve) != "+OK") continue;
      host.call(many({"SLUICE.MADD", "k"}, 0, 5));
      host.call(many({"SLUICE.MCLAIM", "k", "TTL", "500", "TOKEN", "t", "ITEMS"}, 3, 7));
      all.push_back(bytes_of(*host.entry("k")));
    }
  TestHost host;
  host({"SLUICE.INSERT", "k", "WINDOW", "10s", "ITEMS", "a", "b"});
  all.push_back(bytes_of(*host.entry("k")));
  return all;
}

// Refused, or an entry that works.
void try_bytes(const std::string& bytes) {
  TestHost host;
  const std::uint64_t before = FailingMalloc::held;
  FailingMalloc::peak = before;
  Entry::Pointer entry;
  try {
    entry = entry_of(bytes, host.memory(), host.now);
  } catch (const Error& error) {
    ASSERT_LE(FailingMalloc::peak - before, bytes.size() + (64 << 10)) << error.what();
    ASSERT_EQ(FailingMalloc::held, before);
    return;
  }
  host.keys["k"].entry = std::move(entry);
  const std::string again = bytes_of(*host.entry("k"));
  ASSERT_EQ(bytes_of(*entry_of(again, host.memory())), again);
  for (const Words& words : {many({"SLUICE.MADD", "k"}, 0, 9),
                             many({"SLUICE.MEXISTS", "k"}, 0, 9),
                             {"SLUICE.INFO", "k"},
                             many({"SLUICE.MCLAIM", "k", "TTL", "5", "TOKEN", "t", "ITEMS"}, 5, 9),
                             many({"SLUICE.MCONFIRM", "k", "TOKEN", "t", "ITEMS"}, 5, 9),
                             many({"SLUICE.MFORGET", "k"}, 0, 9),
                             {"SLUICE.MERGE", "copy", "k"}}) {
    host.now += 3'000;
    ASSERT_FALSE(host.call(words).starts_with("not one reply"));
  }
}

TEST(HostileEntry, Truncated) {
  for (const std::string& bytes : snapshots()) {
    const std::size_t step = bytes.size() < 2'000 ? 1 : count_of(97, 31, 1);
    for (std::size_t size = 0; size < bytes.size(); size += step) {
      std::string part = bytes.substr(0, size);
      try_bytes(part);
      testing_support::repair_snapshot(std::as_writable_bytes(std::span(part)));
      try_bytes(part);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(HostileEntry, Mutated) {
  std::mt19937_64 random(4);
  const std::vector<std::string> all = snapshots();
  for (int i = 0; i < count_of(500, 3'000, 100'000); ++i) {
    std::string bytes = all[random() % all.size()];
    // Headers and sections are a small part of the bytes; most of the changes go there.
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t near = std::min<std::size_t>(bytes.size(), 300);
      const std::size_t at =
          random() % 3 == 0 ? random() % bytes.size()
          : random() % 2 == 0
              ? random() % near
              : bytes.size() - 1 - random() % std::min<std::size_t>(bytes.size(), 2'000);
      static constexpr int kBytes[] = {0, 1, 0x7f, 0x80, 0xff};
      bytes[at] = static_cast<char>(random() % 2 == 0 ? kBytes[random() % 5]
                                                      : static_cast<int>(random() % 256));
    }
    testing_support::repair_snapshot(std::as_writable_bytes(std::span(bytes)));
    try_bytes(bytes);
    if (HasFatalFailure()) FAIL() << "change " << i << " of " << bytes.substr(0, 120);
  }
}

// The times of section 'server': the bytes before the checksum that ends the section are known.
TEST(HostileEntry, ForgedTimes) {
  TestHost host;
  host({"SLUICE.INSERT", "k", "WINDOW", "10s", "ITEMS", "a"});
  const std::string bytes = bytes_of(*host.entry("k"));
  std::string time(8, '\0');
  for (int i = 0; i < 8; ++i) time[i] = static_cast<char>(host.entry("k")->last_ms() >> (8 * i));
  const std::size_t at = bytes.find(time);
  ASSERT_NE(at, std::string::npos);
  for (const std::size_t field : {at, at + 8, at + 16})
    for (const std::string& forged :
         {std::string(8, '\xff'), std::string("\0\0\0\0\0\0\0\x80", 8), std::string(8, '\0'),
          std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8)}) {
      std::string changed = bytes;
      changed.replace(field, 8, forged);
      testing_support::repair_snapshot(std::as_writable_bytes(std::span(changed)));
      if (forged != std::string(8, '\0')) {
        EXPECT_THROW(entry_of(changed, host.memory()), CorruptSnapshot);
      }
      try_bytes(changed);
    }
}

}  // namespace
}  // namespace sluice::server
