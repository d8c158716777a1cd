// Memory, held by every filter and window: all of it comes from the resource, bytes() tells how much
// that is, and a call that is refused some leaves a filter that goes on as if nothing had happened.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/judge/slack_meter.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::count_of;
using testing_support::full_counts;
using testing_support::kSanitized;
using testing_support::random_digests;

struct Held {
  std::string filter;
  // Of a window over it: by count, or by time.
  std::optional<WindowSpec> window = {};
};

void PrintTo(const Held& held, std::ostream* out) {
  *out << (held.window ? "window of " : "") << held.filter;
}

constexpr WindowSpec kCount{WindowSpec::Kind::count, 2000};
constexpr WindowSpec kTime{WindowSpec::Kind::time, 1'000'000};

// Each filter in the small sizes of the catalogue; windows of each filter that the planner uses for
// them (of many shapes, only one: planning their stages takes long); and filters that grow within a
// few thousand keys.
std::vector<Held> held() {
  constexpr std::uint64_t kMostBytes = 256 << 10;
  std::vector<Held> all = {
      {"dynamic,keys=300,fpr=1e-4"},
      {"dynamic,keys=300,fpr=1e-4,layout=plain"},
      {"dynamic,keys=300,fpr=1e-4,forget=yes"},
      {"dynamic,keys=300,fpr=0.01,tighten=0.8"},
      {"sharded,shards=3,of=exact"},
      {"sharded,of=cohort", kTime},
      {"apbf", kTime},
  };
  for (const FilterInfo& filter : catalogue()) {
    for (const std::string_view settings : filter.row->conformance)
      if (make_filter(settings, {}).bytes() <= kMostBytes) all.push_back({std::string(settings)});
    for (const PlanFamily& family : filter.row->families) {
      if (family.role != Role::window || family.many_shapes) continue;
      all.push_back({std::string(family.text), kCount});
      all.push_back({std::string(family.text), kTime});
    }
  }
  return all;
}

AnyFilter make(const Held& held, MemoryResource& memory) {
  if (!held.window) return make_filter(held.filter, {}, memory);
  // By time, planned for far fewer keys than come: it grows.
  return AnyFilter(Window::make({.spec = *held.window,
                                 .filter = held.filter,
                                 .fpr = 1e-3,
                                 .keys = held.window->by_time() ? std::optional(300) : std::nullopt,
                                 .generations = 5},
                                memory));
}

AnyFilter decoded(const AnyFilter& filter, MemoryResource& memory) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  BytesDecoder from_header(header.written()), from_payload(payload.written());
  if (filter.kind() == FilterKind::window)
    return AnyFilter(Window::decode(from_header, from_payload, memory));
  return decode_filter(static_cast<std::uint16_t>(filter.kind()), filter.version(), from_header,
                       from_payload, memory);
}

// Time passes for a window, generations for a filter that ages.
void age(AnyFilter& filter, std::uint64_t& now) {
  now += 210'000;
  if (auto* window = filter.as<Window>()) {
    if (window->params().spec.by_time()) window->arrive(static_cast<Nanoseconds>(now));
  } else if (filter.ages()) {
    filter.rotate();
  }
}

class MemoryOf : public ::testing::TestWithParam<Held> {};

// Through all that changes what a filter holds, with plain blocks and with mapped tables.
TEST_P(MemoryOf, IsWhatTheResourceCounts) {
  const std::vector<Digest> digests = random_digests(1, 6000);
  std::vector<Verdict> verdicts(digests.size());
  for (const bool maps : {false, true}) {
    TestMemory plain, mapped{MemoryResource::Mapping{}};
    TestMemory& memory = maps ? mapped : plain;
    {
      std::uint64_t now = 1'000'000'000;
      AnyFilter filter = make(GetParam(), memory);
      EXPECT_EQ(&filter.memory(), &memory);
      const auto expect_count = [&](const char* when) {
        EXPECT_EQ(filter.bytes(), memory.taken()) << when;
        EXPECT_EQ(filter.stats().bytes, filter.bytes()) << when;
      };
      expect_count("made");
      age(filter, now);
      for (std::size_t at = 0; at < digests.size(); at += 500) {
        const auto batch = std::span(digests).subspan(at, 500);
        EXPECT_EQ(filter.observe(batch, std::span(verdicts).subspan(at, 500)), 500u);
        expect_count("observed");
        if (at % 1500 == 0) age(filter, now);
        expect_count("aged");
      }
      if (filter.can_forget())
        for (std::size_t i = 0; i < digests.size(); i += 2) filter.forget(digests[i]);
      expect_count("forgot");
      const std::uint64_t one = memory.taken();
      {
        AnyFilter other = decoded(filter, memory);
        EXPECT_EQ(filter.bytes() + other.bytes(), memory.taken()) << "decoded";
        if (filter.can_merge()) {
          EXPECT_EQ(other.insert(random_digests(2, 3000)), 3000u);
          filter.merge(other);
          EXPECT_EQ(filter.bytes() + other.bytes(), memory.taken()) << "merged";
        }
      }
      EXPECT_GE(memory.taken(), filter.can_merge() ? 0 : one);
      expect_count("alone again");
      AnyFilter moved(std::move(filter));
      filter = std::move(moved);
      expect_count("moved");
      for (int i = 0; i < 12; ++i) age(filter, now);
      expect_count("idle");
      filter.clear();
      expect_count("cleared");
    }
    EXPECT_EQ(memory.taken(), 0u);
    EXPECT_EQ(memory.blocks(), 0u);
  }
}

// How many blocks a filter has makes no difference to bytes(): it asks for a few of them, and knows
// the rest. Not so the stages of a window over shards: threads may start in each.
TEST_P(MemoryOf, IsKnownWithoutLookingAtAllOfIt) {
  if (GetParam().window && std::string_view(GetParam().filter).starts_with("sharded")) return;
  TestMemory memory;
  AnyFilter filter = make(GetParam(), memory);
  std::uint64_t now = 1'000'000'000;
  age(filter, now);
  const auto asked_by_bytes = [&] {
    const std::uint64_t before = memory.asked();
    EXPECT_EQ(filter.bytes(), memory.taken());
    return memory.asked() - before;
  };
  EXPECT_EQ(filter.insert(random_digests(10, 400)), 400u);
  const std::uint64_t few = asked_by_bytes();
  // Some are full before the last.
  for (int i = 0; i < count_of(5, 12, 12); ++i)
    static_cast<void>(filter.insert(random_digests(11 + i, 4000)));
  EXPECT_LE(asked_by_bytes(), few + 4);
}

// Calls act() with the first, the second, … allocation refused, until one needs no more of them.
// prepare() comes before each and check() after it, with all memory there is.
void refuse_each(
    TestMemory& memory, const std::function<void()>& prepare, const std::function<void()>& act,
    const std::function<void()>& check = [] {}) {
  for (std::uint64_t call = 1;; ++call) {
    memory.fail_at(0);
    prepare();
    memory.fail_at(call);
    act();
    const bool done = !memory.failed();
    memory.fail_at(0);
    check();
    if (done || ::testing::Test::HasFailure()) return;
    ASSERT_LT(call, 10'000u);
  }
}

TEST_P(MemoryOf, MakingAndReadingMayFailAnywhere) {
  TestMemory memory;
  std::optional<AnyFilter> filter;
  refuse_each(
      memory, [&] { filter.reset(); },
      [&] {
        try {
          filter.emplace(make(GetParam(), memory));
        } catch (const NoMemory&) {
          EXPECT_EQ(memory.taken(), 0u);
          EXPECT_TRUE(memory.failed());
        }
      });
  ASSERT_TRUE(filter.has_value());
  EXPECT_EQ(filter->insert(random_digests(3, 2500)), 2500u);
  TestMemory other;
  std::optional<AnyFilter> copy;
  refuse_each(
      other, [&] { copy.reset(); },
      [&] {
        try {
          copy.emplace(decoded(*filter, other));
        } catch (const NoMemory&) {
          EXPECT_EQ(other.taken(), 0u);
        }
      });
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(bytes_of(*copy), bytes_of(*filter));
}

// A batch that is cut short by an allocation that fails, and then goes on, ends where one that was
// never cut does.
TEST_P(MemoryOf, ABatchMayFailAnywhere) {
  const std::vector<Digest> digests = random_digests(4, 4000);
  std::vector<Verdict> expected(digests.size());
  std::uint64_t now = 1'000'000'000;
  AnyFilter whole = make(GetParam(), default_memory());
  age(whole, now);
  ASSERT_EQ(whole.observe(digests, expected), digests.size());
  TestMemory memory;
  std::optional<AnyFilter> filter;
  refuse_each(
      memory,
      [&] {
        filter.reset();
        filter.emplace(make(GetParam(), memory));
        now = 1'000'000'000;
        age(*filter, now);
      },
      [&] {
        std::vector<Verdict> verdicts(digests.size());
        std::size_t judged = filter->observe(digests, verdicts);
        if (judged < digests.size()) {
          EXPECT_TRUE(memory.failed());
          EXPECT_EQ(filter->bytes(), memory.taken());
        }
        while (judged < digests.size()) {
          const std::size_t more = filter->observe(std::span(digests).subspan(judged),
                                                   std::span(verdicts).subspan(judged));
          ASSERT_GT(more, 0u) << "there is memory again";
          judged += more;
        }
        EXPECT_EQ(verdicts, expected);
        EXPECT_EQ(filter->stats().keys, whole.stats().keys);
        EXPECT_TRUE(bytes_of(*filter) == bytes_of(whole)) << "as if it had never been refused";
        EXPECT_EQ(filter->bytes(), memory.taken());
      });
  filter.reset();
  EXPECT_EQ(memory.taken(), 0u);
}

TEST_P(MemoryOf, MergingMayFailAnywhere) {
  TestMemory memory;
  const std::vector<Digest> digests = random_digests(5, 3000);
  std::optional<AnyFilter> filter;
  AnyFilter other = make(GetParam(), default_memory());
  if (!other.can_merge()) return;
  EXPECT_EQ(other.insert(std::span(digests).first(2500)), 2500u);
  std::vector<std::byte> before;
  refuse_each(
      memory,
      [&] {
        filter.reset();
        filter.emplace(make(GetParam(), memory));
        EXPECT_EQ(filter->insert(std::span(digests).last(1000)), 1000u);
        before = bytes_of(*filter);
      },
      [&] {
        try {
          filter->merge(other);
        } catch (const NoMemory&) {
          EXPECT_TRUE(bytes_of(*filter) == before) << "as it was";
        }
        EXPECT_EQ(filter->bytes(), memory.taken());
      });
  std::vector<Verdict> verdicts(digests.size());
  filter->may_contain(digests, verdicts);
  if (!filter->promises().no_false_negatives) return;
  EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 0);
}

// What cannot say that it failed does its work all the same. What it had no memory for, the next key
// asks for again: the filter is then as if it had never been refused any.
TEST_P(MemoryOf, AgeingAndClearingDoNotFail) {
  TestMemory memory;
  std::optional<AnyFilter> filter;
  std::uint64_t now = 0;
  const std::vector<Digest> first = random_digests(6, count_of(1500, 3000, 3000)),
                            then = random_digests(9, 700);
  const auto fill = [&](MemoryResource& from) {
    filter.reset();
    filter.emplace(make(GetParam(), from));
    now = 1'000'000'000;
    age(*filter, now);
    EXPECT_EQ(filter->insert(first), first.size());
  };
  const auto act = [&](int rotations, bool clears) {
    for (int i = 0; i < rotations; ++i) age(*filter, now);
    EXPECT_EQ(filter->bytes(), filter->memory().taken());
    if (clears) {
      filter->clear();
      EXPECT_EQ(filter->stats().keys, 0u);
    }
    for (int i = 0; i < rotations / 3; ++i) age(*filter, now);
    EXPECT_EQ(filter->bytes(), filter->memory().taken());
  };
  const auto go_on = [&] {
    EXPECT_EQ(filter->insert(then), then.size());
    return bytes_of(*filter);
  };
  for (const int rotations : {0, 1, 3, 5, 9})
    for (const bool clears : {false, true}) {
      TestMemory enough;
      fill(enough);
      act(rotations, clears);
      const std::vector<std::byte> expected = go_on();
      refuse_each(
          memory, [&] { fill(memory); }, [&] { act(rotations, clears); },
          [&] { EXPECT_TRUE(go_on() == expected) << rotations << " generations"; });
      filter.reset();
    }
}

Audit audit_of(const AnyFilter& filter) {
  return Audit({.sample = 2, .most_bytes = 256 << 10}, filter);
}

std::vector<std::byte> bytes_of_audit(const Audit& audit) {
  BytesEncoder to;
  audit.encode(to);
  return to.take();
}

// An audit and a meter of the slack hold keys beside the filter, in the same resource.
TEST(MemoryOfAudits, IsWhatTheResourceCounts) {
  const std::vector<Digest> digests = random_digests(12, 20'000);
  std::vector<Verdict> verdicts(digests.size());
  TestMemory memory;
  {
    AnyFilter filter(Window::make({.spec = kCount}, memory));
    Audit audit = audit_of(filter);
    SlackMeter meter(*filter.window());
    const auto expect_count = [&](const char* when) {
      EXPECT_EQ(filter.bytes() + audit.bytes() + meter.bytes(), memory.taken()) << when;
      EXPECT_EQ(audit.report().bytes, audit.bytes()) << when;
      EXPECT_GE(audit.bytes(), audit.report().keys * sizeof(Shadow::Entry)) << when;
    };
    expect_count("made");
    for (std::size_t at = 0; at < digests.size(); at += 200) {
      const auto batch = std::span(digests).subspan(at, 200);
      const auto judged = std::span(verdicts).subspan(at, 200);
      ASSERT_EQ(filter.observe(batch, judged), 200u);
      audit.observe(batch, judged);
      meter.look(batch, judged, {}, {});
      expect_count("observed");
    }
    EXPECT_GT(audit.bytes(), 50u << 10) << "it has grown";
    const std::vector<std::byte> bytes = bytes_of_audit(audit);
    BytesDecoder from(bytes);
    audit.decode(from);
    expect_count("decoded");
    EXPECT_TRUE(bytes_of_audit(audit) == bytes);
  }
  EXPECT_EQ(memory.taken(), 0u);
  EXPECT_EQ(memory.blocks(), 0u);
}

TEST(MemoryOfAudits, MakingAndReadingMayFailAnywhere) {
  AnyFilter written = make_filter("exact", {});
  Audit audit = audit_of(written);
  const std::vector<Digest> digests = random_digests(13, 2000);
  std::vector<Verdict> verdicts(digests.size());
  ASSERT_EQ(written.observe(digests, verdicts), digests.size());
  audit.observe(digests, verdicts);
  const std::vector<std::byte> bytes = bytes_of_audit(audit);
  TestMemory memory;
  AnyFilter filter = make_filter("exact", {}, memory);
  std::optional<Audit> copy;
  unsigned refused = 0;
  refuse_each(
      memory, [&] { copy.reset(); },
      [&] {
        const std::uint64_t before = memory.taken();
        try {
          copy.emplace(Audit::Params{.sample = 2, .most_bytes = 256 << 10}, filter);
        } catch (const NoMemory&) {
          EXPECT_EQ(memory.taken(), before);
          ++refused;
          return;
        }
        const std::vector<std::byte> empty = bytes_of_audit(*copy);
        BytesDecoder from(bytes);
        try {
          copy->decode(from);
          EXPECT_TRUE(bytes_of_audit(*copy) == bytes);
        } catch (const NoMemory&) {
          EXPECT_TRUE(bytes_of_audit(*copy) == empty) << "as it was";
          ++refused;
        }
        EXPECT_EQ(memory.taken(), filter.bytes() + copy->bytes());
      });
  EXPECT_GE(refused, 3u);
}

// The filter has judged these keys: none may be left out because the audit is refused memory. It goes
// on with half of the sample.
TEST(MemoryOfAudits, ABatchDoesNotFail) {
  constexpr std::size_t kKeys = 6000;
  std::vector<Digest> digests = random_digests(14, kKeys);
  digests.insert(digests.end(), digests.begin(), digests.end());
  unsigned halved = 0;
  TestMemory memory;
  std::optional<AnyFilter> filter;
  std::optional<Audit> audit;
  std::vector<Verdict> verdicts(digests.size());
  AnyFilter exact = make_filter("exact", {});
  ASSERT_EQ(exact.observe(digests, verdicts), digests.size());
  refuse_each(
      memory,
      [&] {
        audit.reset();
        filter.emplace(make_filter("exact", {}, memory));
        audit.emplace(Audit::Params{.sample = 1, .most_bytes = 8 << 20}, *filter);
      },
      [&] {
        audit->observe(digests, verdicts);
        EXPECT_EQ(memory.taken(), filter->bytes() + audit->bytes());
        const Audit::Report report = audit->report();
        EXPECT_EQ(report.doublings, memory.failed() ? 1u : 0u);
        halved += report.doublings;
        const double each = static_cast<double>(report.sample);
        EXPECT_NEAR(report.positives.trials * each, kKeys, report.doublings == 0 ? 0 : 400);
        EXPECT_NEAR(report.negatives.trials * each, kKeys, report.doublings == 0 ? 0 : 400);
        EXPECT_EQ(report.positives.errors, 0);
        EXPECT_EQ(report.negatives.errors, 0);
        const std::vector<std::byte> bytes = bytes_of_audit(*audit);
        AnyFilter other = make_filter("exact", {});
        Audit copy({.sample = 1, .most_bytes = 8 << 20}, other);
        BytesDecoder from(bytes);
        ASSERT_NO_THROW(copy.decode(from));
        EXPECT_TRUE(bytes_of_audit(copy) == bytes);
      });
  EXPECT_GE(halved, 5u);
  // Refused all that it asks for from the first key on: a sample of 32 slots is one still.
  HostMemory none(malloc_calls(), 1 << 20);
  const AnyFilter filled = make_filter("exact", {}, none);
  Audit small({.sample = 1, .most_bytes = 8 << 20}, filled);
  none.charge(none.left());
  small.observe(digests, verdicts);
  EXPECT_GT(small.report().doublings, 5u);
  EXPECT_TRUE(small.report().knows_all);
  EXPECT_EQ(small.report().positives.errors, 0);
  none.discharge((1 << 20) - filled.bytes() - small.bytes());
}

std::vector<std::string> large() {
  std::vector<std::string> all;
  for (const FilterInfo& filter : catalogue())
    all.insert(all.end(), filter.row->large.begin(), filter.row->large.end());
  return all;
}

// Filters without a table of their own have no such size.
TEST(LargeFilters, AreThereOfEachRowOfTheCatalogue) {
  for (const FilterInfo& filter : catalogue())
    EXPECT_EQ(filter.row->large.empty(), filter.name == "none" || filter.name == "sharded")
        << filter.name;
}

class LargeInPages : public ::testing::TestWithParam<std::string> {};

// A host's filter is made of blocks of at most 1 MiB, alignment included, and is the same filter.
TEST_P(LargeInPages, IsTheSameFilterInSmallBlocks) {
  static std::size_t largest;
  largest = 0;
  HostMemory::Calls calls = malloc_calls();
  // What is given is not zero, as in a host that has run for a while.
  calls.allocate = [](std::size_t bytes) {
    largest = std::max(largest, bytes);
    void* const block = std::malloc(bytes);
    std::memset(block, 0xA5, bytes);
    return block;
  };
  HostMemory host(calls);
  {
    AnyFilter flat = make_filter(GetParam(), {.fpr = 1e-4});
    AnyFilter paged = make_filter(GetParam(), {.fpr = 1e-4}, host);
    // Those that grow need many keys before they have several blocks.
    const std::size_t least = count_of(50'000, 400'000, 400'000);
    std::vector<Digest> digests = random_digests(7, 400'000);
    std::ranges::copy_n(digests.begin(), 20'000,
                        digests.begin() + static_cast<std::ptrdiff_t>(least / 4 * 3));
    std::vector<Verdict> other(digests.size());
    std::size_t judged = 0;
    for (; judged < least || (judged < digests.size() && paged.bytes() <= 1u << 20);
         judged += 50'000)
      ASSERT_EQ(paged.observe(std::span(digests).subspan(judged, 50'000),
                              std::span(other).subspan(judged, 50'000)),
                50'000u);
    digests.resize(judged);
    other.resize(judged);
    std::vector<Verdict> one(judged);
    ASSERT_EQ(flat.observe(digests, one), judged);
    EXPECT_GT(paged.bytes(), 1u << 20);
    EXPECT_EQ(one, other);
    EXPECT_EQ(bytes_of(paged), bytes_of(flat));
    EXPECT_EQ(paged.bytes(), host.taken());
    const std::vector<Digest> strangers = random_digests(8, 50'000);
    one.resize(strangers.size());
    other.resize(strangers.size());
    flat.may_contain(strangers, one);
    paged.may_contain(strangers, other);
    EXPECT_EQ(one, other);
    AnyFilter copy = decoded(flat, host);
    EXPECT_EQ(bytes_of(copy), bytes_of(flat));
    // Round all generation numbers, with a clear on the way: pages that were used before.
    for (int generation = 0; flat.ages() && generation < 80; ++generation) {
      const auto some = std::span(strangers).subspan(generation * 500, 500);
      for (AnyFilter* filter : {&flat, &paged}) {
        filter->rotate();
        if (generation == 40) filter->clear();
      }
      ASSERT_EQ(flat.observe(some, std::span(one).first(500)), 500u);
      ASSERT_EQ(paged.observe(some, std::span(other).first(500)), 500u);
      ASSERT_EQ(one, other);
    }
    EXPECT_EQ(bytes_of(paged), bytes_of(flat));
    if (flat.can_forget())
      for (std::size_t i = 0; i < 1000; ++i) {
        ASSERT_EQ(flat.forget(digests[i]), paged.forget(digests[i]));
      }
    if (flat.can_merge()) {
      if (kSanitized && !full_counts()) {
        copy.clear();
        EXPECT_EQ(copy.insert(strangers), strangers.size());
      }
      flat.merge(copy);
      paged.merge(copy);
    }
    EXPECT_EQ(bytes_of(paged), bytes_of(flat));
    EXPECT_EQ(paged.bytes() + copy.bytes(), host.taken());
    flat.clear();
    paged.clear();
    EXPECT_EQ(bytes_of(paged), bytes_of(flat));
  }
  EXPECT_LE(largest, std::size_t{1} << 20);
  EXPECT_EQ(host.taken(), 0u);
}

// Addresses that cost nothing until they are touched, given out once.
struct SparseHost {
  static constexpr std::size_t kBytes = std::size_t{13} << 30;
  static inline std::byte *begin = nullptr, *next = nullptr;

  static HostMemory::Calls calls() {
    return {.allocate = [](std::size_t bytes) -> void* {
              std::byte* const block = next;
              if (bytes > static_cast<std::size_t>(begin + kBytes - next)) return nullptr;
              next += (bytes + 15) / 16 * 16;
              return block;
            },
            .free = [](void*) {}};
  }
};

TEST(LargeInHost, TablesMayTakeMoreThanEightGiB) {
  void* const map = mmap(nullptr, SparseHost::kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) GTEST_SKIP() << "no addresses";
  for (const char* text : {"bloom,bytes=12GiB", "cohort,bytes=12GiB"}) {
    SparseHost::begin = SparseHost::next = static_cast<std::byte*>(map);
    HostMemory host(SparseHost::calls());
    {
      AnyFilter filter = make_filter(text, {.fpr = 1e-6}, host);
      EXPECT_GE(filter.bytes(), std::uint64_t{12} << 30);
      EXPECT_EQ(filter.bytes(), host.taken());
      const std::vector<Digest> digests = random_digests(1, 2000);
      std::vector<Verdict> verdicts(digests.size());
      for (const Verdict expected : {Verdict::distinct, Verdict::duplicate}) {
        ASSERT_EQ(filter.observe(digests, verdicts), digests.size());
        EXPECT_EQ(std::ranges::count(verdicts, expected), 2000) << text;
      }
      filter.clear();
      filter.may_contain(digests, verdicts);
      EXPECT_EQ(std::ranges::count(verdicts, Verdict::distinct), 2000) << text;
    }
    EXPECT_EQ(host.taken(), 0u);
  }
  munmap(map, SparseHost::kBytes);
}

INSTANTIATE_TEST_SUITE_P(Filters, LargeInPages, ::testing::ValuesIn(large()));
INSTANTIATE_TEST_SUITE_P(Filters, MemoryOf, ::testing::ValuesIn(held()));

}  // namespace
}  // namespace sluice
