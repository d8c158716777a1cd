// States that somebody forged: every field of every filter set to values that no filter writes, one
// at a time, behind right lengths and checksums. What is not refused when it is decoded must work:
// it judges, ages, is written and read again, and takes no more memory than its own size warrants.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/base/random.hpp"
#include "sluice/filters/catalogue_row.hpp"
#include "sluice/snapshot/decode_any.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/forged_fields.hpp"
#include "tests/support/host_memory.hpp"

namespace sluice {
namespace {

using testing_support::count_of;
using testing_support::digest_of;
using testing_support::FieldEncoder;
using testing_support::forgeries_of;

constexpr Nanoseconds kSecond = 1'000'000'000;
// Every state here is smaller than a megabyte. What it may ask for later is 16 MiB, or 16 × its
// size; a few such stages fit.
constexpr std::uint64_t kBudget = std::uint64_t{64} << 20;

struct Parts {
  std::uint16_t kind = 0, version = 0;
  FieldEncoder header, payload;
};

Parts parts_of(const AnyFilter& filter) {
  Parts parts{static_cast<std::uint16_t>(filter.kind()), filter.version(), {}, {}};
  filter.encode_header(parts.header);
  filter.encode_payload(parts.payload);
  return parts;
}

std::vector<std::byte> joined(const Parts& parts) {
  std::vector<std::byte> all = parts.header.joined();
  const std::vector<std::byte> payload = parts.payload.joined();
  all.insert(all.end(), payload.begin(), payload.end());
  return all;
}

AnyFilter decoded(const Parts& parts, MemoryResource& memory) {
  const std::vector<std::byte> header = parts.header.joined(), payload = parts.payload.joined();
  BytesDecoder from_header(header), from_payload(payload);
  AnyFilter filter = decode_any(parts.kind, parts.version, from_header, from_payload, memory);
  if (from_header.remaining() != 0 || from_payload.remaining() != 0)
    throw CorruptSnapshot("bytes are left");
  return filter;
}

// A filter in use. Throws and fails where a caller would be let down in the middle of a run.
class Use {
 public:
  explicit Use(AnyFilter& filter) : filter_(filter) {
    for (std::uint64_t key = 0; key < count_of<std::uint64_t>(400, 1000, 10'000); ++key)
      digests_.push_back(digest_of(key % 7 == 6 ? key / 2 : key));
    verdicts_.resize(digests_.size());
    late_ = std::make_unique<bool[]>(digests_.size());
  }

  void run() {
    for (std::size_t at = 0; at < digests_.size(); at += kBatch) {
      const auto digests = std::span(digests_).subspan(at, std::min(kBatch, digests_.size() - at));
      const auto verdicts = std::span(verdicts_).subspan(at, digests.size());
      Window* const window = filter_.window();
      if (window != nullptr) {
        // Within a tick, over a few, over a window, and back.
        std::vector<Nanoseconds> times(digests.size());
        for (std::size_t i = 0; i < times.size(); ++i)
          times[i] = (1'700'000'000 + Nanoseconds(at + i) / 3 - (i % 50 == 7 ? 60 : 0)) * kSecond;
        ASSERT_EQ(window->judge(digests, times, verdicts, {late_.get(), digests.size()}),
                  digests.size())
            << "a window stops in the middle of a stream";
        window->arrive(times.back() + kSecond);
      } else {
        // Filters of one size may be full.
        filter_.observe(digests, verdicts);
        if (filter_.ages()) filter_.rotate();
        if (filter_.ages() && filter_.generations() > 0)
          filter_.admit_aged(digests[0], 1, Anchor::refreshed);
      }
    }
    filter_.stats();
    filter_.settings();
    filter_.may_contain(digests_, verdicts_);
    if (filter_.ages()) filter_.slack();
    if (filter_.can_forget())
      for (const Digest& digest : std::span(digests_).first(100)) filter_.forget(digest);
  }

 private:
  static constexpr std::size_t kBatch = 100;
  AnyFilter& filter_;
  std::vector<Digest> digests_;
  std::vector<Verdict> verdicts_;
  std::unique_ptr<bool[]> late_;
};

struct Tally {
  std::size_t refused = 0, used = 0;
};

void try_out(const Parts& parts, Tally& tally) {
  HostMemory memory(malloc_calls(), kBudget);
  std::optional<AnyFilter> filter;
  try {
    filter.emplace(decoded(parts, memory));
  } catch (const CorruptSnapshot&) {
    ++tally.refused;
    return;
  } catch (const NoMemory&) {
    ++tally.refused;
    return;
  }
  ++tally.used;
  EXPECT_EQ(joined(parts_of(*filter)), joined(parts)) << "a state has one form";
  EXPECT_LE(memory.taken(), (std::uint64_t{16} << 20) + 16 * joined(parts).size());
  Use(*filter).run();
  if (testing::Test::HasFailure()) return;
  const Parts again = parts_of(*filter);
  AnyFilter copy = decoded(again, memory);
  EXPECT_EQ(joined(parts_of(copy)), joined(again));
  copy.clear();
  Use(copy).run();
}

void forge_each_field(const std::string& name, const AnyFilter& filter) {
  constexpr std::size_t kMostPayloadFields = 40;  // those of a few parts; the others are alike
  const Parts good = parts_of(filter);
  Tally tally;
  unsigned cases = 0;
  try_out(good, tally);
  ASSERT_EQ(tally.used, 1u) << name;
  for (const bool in_payload : {false, true}) {
    const auto& fields = in_payload ? good.payload.fields : good.header.fields;
    std::size_t forged_fields = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].empty() || fields[i].size() > (in_payload ? 10u : 1000u) ||
          (in_payload && ++forged_fields > kMostPayloadFields))
        continue;
      for (const std::vector<std::byte>& forged : forgeries_of(fields[i])) {
        if (++cases % count_of(20u, 8u, 1u) != 0) continue;
        Parts bad = good;
        (in_payload ? bad.payload : bad.header).fields[i] = forged;
        const auto start = std::chrono::steady_clock::now();
        try {
          try_out(bad, tally);
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        EXPECT_LT(took.count(), 20) << "takes so long that nobody would wait for it";
        if (testing::Test::HasFailure()) {
          FAIL() << name << ": field " << i << (in_payload ? " of the payload" : " of the header")
                 << " of " << fields[i].size() << " bytes, as " << testing::PrintToString(forged);
        }
      }
    }
  }
  EXPECT_GT(tally.refused, 10u) << name;
}

class ForgedStates : public testing::TestWithParam<GoldenSample> {};
std::vector<GoldenSample> samples() {
  std::vector<GoldenSample> all;
  for (const FilterInfo& filter : catalogue())
    if (filter.name != "none")
      all.insert(all.end(), filter.row->golden.begin(), filter.row->golden.end());
  // Large enough that their sweep falls behind.
  all.push_back({"apbf_behind", "apbf,k=2,l=2,bytes=10240,keys=200,fpr=0.1"});
  all.push_back({"apbbf_behind", "apbbf,layout=line,k=3,l=5,bytes=2560,keys=200,fpr=0.1"});
  return all;
}
std::string name_of_sample(const testing::TestParamInfo<GoldenSample>& test) {
  const std::string name(test.param.file);
  return name.substr(0, name.find('-'));
}
INSTANTIATE_TEST_SUITE_P(Filters, ForgedStates, testing::ValuesIn(samples()), name_of_sample);

TEST_P(ForgedStates, OfFiltersAreRefusedOrWork) {
  AnyFilter filter = make_filter(GetParam().filter, {});
  for (std::uint64_t key = 0; key < 40; ++key) {
    const Digest digest = digest_of(key);
    filter.insert({&digest, 1});
    if (filter.ages() && key % 8 == 7) filter.rotate();
  }
  forge_each_field(std::string(GetParam().filter), filter);
}

struct WindowSample {
  std::string name;
  Window::Params params;
};
std::vector<WindowSample> window_samples() {
  const WindowSpec time{WindowSpec::Kind::time, 100 * kSecond}, count{WindowSpec::Kind::count, 300},
      hour{WindowSpec::Kind::landmark, 3600 * kSecond};
  std::vector<WindowSample> all;
  for (const bool listed : {false, true}) {
    const std::string form = listed ? "_listed" : "";
    all.push_back({"time" + form, {.spec = time, .keys = 50, .listed = listed}});
    all.push_back({"count" + form, {.spec = count, .anchor = Anchor::refreshed, .listed = listed}});
    all.push_back({"hour" + form, {.spec = hour, .keys = 50, .listed = listed}});
    all.push_back(
        {"cardinality" + form,
         {.spec = time, .keys = 20, .growth = Growth::By::cardinality, .listed = listed}});
    for (const char* filter :
         {"apbf", "apbbf", "timing", "timer", "exact-window", "sharded,of=cohort"})
      all.push_back({std::string(filter).substr(0, std::string(filter).find_first_of(",-")) + form,
                     {.spec = time, .filter = filter, .keys = 50, .listed = listed}});
  }
  return all;
}

class ForgedWindows : public testing::TestWithParam<WindowSample> {};
INSTANTIATE_TEST_SUITE_P(Windows, ForgedWindows, testing::ValuesIn(window_samples()),
                         [](const auto& test) { return test.param.name; });

TEST_P(ForgedWindows, AreRefusedOrWork) {
  Window window = Window::make(GetParam().params);
  // A list stays one, and a table grows.
  const std::uint64_t keys = GetParam().params.listed ? 10 : 150;
  for (std::uint64_t key = 0; key < keys; ++key) {
    const Digest digest = digest_of(key);
    const Nanoseconds at = (1'700'000'000 + Nanoseconds(key) / 5) * kSecond;
    Verdict verdict{};
    bool late = false;
    ASSERT_EQ(window.judge({&digest, 1}, {&at, 1}, {&verdict, 1}, {&late, 1}), 1u);
  }
  ASSERT_EQ(window.listed(), GetParam().params.listed);
  forge_each_field(GetParam().name, AnyFilter(std::move(window)));
}

// Fields that agree with each other in what no list can be in: a seeded sample of pairs. A list whose
// clock has a time that waits, so that every field is there.
TEST(ForgedLists, OfTwoFieldsAreRefusedOrWork) {
  Window window = Window::make({.spec = {WindowSpec::Kind::time, 100 * kSecond},
                                .keys = 50,
                                .max_ahead = 100 * kSecond,
                                .listed = true});
  for (const Nanoseconds second : {0, 1, 2, 5000}) {
    const Digest digest = digest_of(static_cast<std::uint64_t>(second));
    const Nanoseconds at = (1'700'000'000 + second) * kSecond;
    Verdict verdict{};
    bool late = false;
    ASSERT_EQ(window.judge({&digest, 1}, {&at, 1}, {&verdict, 1}, {&late, 1}), 1u);
  }
  const AnyFilter filter(std::move(window));
  const Parts good = parts_of(filter);
  SplitMix64 random(1);
  const auto forge = [&](Parts& parts) {
    auto& field = parts.header.fields[random.next() % parts.header.fields.size()];
    const auto all = forgeries_of(field);
    if (all.empty()) return;
    field = *std::next(all.begin(), static_cast<std::ptrdiff_t>(random.next() % all.size()));
  };
  std::size_t refused = 0, used = 0;
  for (unsigned round = 0; round < count_of(1000u, 3000u, 100'000u); ++round) {
    Parts bad = good;
    forge(bad);
    forge(bad);
    HostMemory memory(malloc_calls(), kBudget);
    try {
      AnyFilter copy = decoded(bad, memory);
      ++used;
      copy.window()->arrive(1'700'000'010 * kSecond);
      const Digest digest = digest_of(9);
      Verdict verdict{};
      bool late = false;
      const Nanoseconds at = 1'700'000'020 * kSecond;
      ASSERT_EQ(copy.window()->judge({&digest, 1}, {&at, 1}, {&verdict, 1}, {&late, 1}), 1u)
          << round << ": a window stops in the middle of a stream";
      const Parts again = parts_of(copy);
      EXPECT_EQ(joined(parts_of(decoded(again, memory))), joined(again)) << round;
      Use(copy).run();
      ASSERT_FALSE(HasFailure()) << round;
    } catch (const CorruptSnapshot&) {
      ++refused;
    } catch (const NoMemory&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100u);
  EXPECT_GT(used, 100u);
  // A clock that owes its claimant, which only a table can.
  Parts owing = good;
  for (std::size_t i = 1; i + 1 < owing.header.fields.size(); ++i)
    if (owing.header.fields[i] ==
        testing_support::raw(static_cast<std::uint64_t>(1'700'000'002 * kSecond), 8))
      owing.header.fields[i + 1] = owing.header.fields[i];
  ASSERT_NE(joined(owing), joined(good));
  EXPECT_THROW(decoded(owing, default_memory()), CorruptSnapshot);
}

// A list whose table and next stage are of another size than its text and its keys say together.
TEST(ForgedLists, OfATextAndANumberOfKeysAreRefusedOrWork) {
  const auto number = [](std::uint64_t value) {
    BytesEncoder bytes;
    bytes.varint(value);
    return bytes.take();
  };
  constexpr std::uint64_t kKeys = 50;
  const Parts good = parts_of(AnyFilter(Window::make(
      {.spec = {WindowSpec::Kind::time, 100 * kSecond}, .keys = kKeys, .listed = true})));
  const auto keys_at = std::ranges::find(good.header.fields, number(kKeys));
  const auto text_at = std::ranges::find_if(good.header.fields, [](const auto& field) {
    return std::ranges::equal(field, std::as_bytes(std::span("cohort", 6)));
  });
  ASSERT_NE(keys_at, good.header.fields.end());
  ASSERT_NE(text_at, good.header.fields.end());
  std::size_t refused = 0, used = 0;
  for (const std::string text :
       {"cohort,bytes=2KiB", "cohort,keys=20", "cohort,keys=20,bytes=8MiB", "apbf,keys=20",
        "apbf,bytes=4KiB", "apbbf,keys=20", "timing,keys=20", "timer,bytes=4KiB",
        "exact-window,keys=20", "sharded,of=cohort,keys=20"})
    for (const std::uint64_t keys :
         {std::uint64_t{1}, kKeys, std::uint64_t{100'000}, std::uint64_t{2'000'000},
          std::uint64_t{1} << 30, std::uint64_t{1} << 40, std::uint64_t{1} << 63}) {
      SCOPED_TRACE(text + " of " + std::to_string(keys) + " keys");
      Parts bad = good;
      const auto field = [&](auto at) -> std::vector<std::byte>& {
        return bad.header.fields[static_cast<std::size_t>(at - good.header.fields.begin())];
      };
      const auto bytes = std::as_bytes(std::span(text));
      field(text_at).assign(bytes.begin(), bytes.end());
      field(text_at - 1) = number(text.size());
      field(keys_at) = number(keys);
      Tally tally;
      try_out(bad, tally);
      ASSERT_FALSE(HasFailure());
      refused += tally.refused;
      used += tally.used;
    }
  EXPECT_GT(refused, 20u);
  EXPECT_GT(used, 20u);
}

// What a window of a few hundred bytes may be told to become.
TEST(ForgedTexts, ATextOfStagesThatAsksForMuchIsRefused) {
  const auto forged = [](bool listed, std::string filter, std::uint64_t budget,
                         std::uint64_t others = 0) {
    Window window = Window::make(
        {.spec = {WindowSpec::Kind::time, 600 * kSecond}, .keys = 50, .listed = listed});
    Parts parts = parts_of(AnyFilter(std::move(window)));
    for (std::size_t i = 1; i < parts.header.fields.size(); ++i) {
      const auto text = std::as_bytes(std::span("cohort", 6));
      if (!std::ranges::equal(parts.header.fields[i], text)) continue;
      BytesEncoder length;
      length.varint(filter.size());
      parts.header.fields[i - 1] = length.take();
      const auto bytes = std::as_bytes(std::span(filter));
      parts.header.fields[i].assign(bytes.begin(), bytes.end());
    }
    HostMemory memory(malloc_calls(), budget);
    memory.charge(others);
    const bool is_listed = decoded(parts, memory).window()->listed();
    memory.discharge(others);
    return is_listed;
  };
  const std::uint64_t none = MemoryResource::kNoBudget;
  EXPECT_TRUE(forged(true, "cohort,bytes=1MiB", none));
  EXPECT_FALSE(forged(false, "cohort,bytes=1MiB", none));
  EXPECT_THROW(forged(true, "cohort,bytes=2GiB", none), CorruptSnapshot);
  EXPECT_THROW(forged(true, "cohort,keys=1G", none), CorruptSnapshot);
  EXPECT_THROW(forged(true, "sharded,shards=64,of=cohort,bytes=2GiB", none), CorruptSnapshot);
  EXPECT_THROW(forged(false, "cohort,bytes=2GiB", none), CorruptSnapshot);
  EXPECT_THROW(forged(false, "cohort,bytes=32MiB", none), CorruptSnapshot);
  EXPECT_THROW(forged(false, "apbf", none), CorruptSnapshot);
  // A budget says no when it is decoded, not when the table is made.
  EXPECT_TRUE(forged(true, "cohort,bytes=32MiB", 64 << 20));
  EXPECT_THROW(forged(true, "cohort,bytes=32MiB", 16 << 20), NoMemory);
  // Of a budget that others use too, what they leave.
  EXPECT_TRUE(forged(true, "cohort,bytes=32MiB", 64 << 20, 16 << 20));
  EXPECT_THROW(forged(true, "cohort,bytes=32MiB", 64 << 20, 40 << 20), NoMemory);
  EXPECT_FALSE(forged(false, "cohort,bytes=1MiB", 8 << 20, 4 << 20));
}

}  // namespace
}  // namespace sluice
