// What `stable` and `reservoir` do beyond the contract that tests/conformance holds them to.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/filters/reservoir.hpp"
#include "sluice/filters/stable.hpp"

namespace sluice {
namespace {

using Variant = Reservoir::Variant;

Stable stable(const std::string& settings, const Wish& wish = {}) {
  return Stable::make(Stable::Params::from(wish, Settings::parse(settings)));
}

Reservoir reservoir(const std::string& settings, const Wish& wish = {}) {
  return Reservoir::make(Reservoir::Params::from(wish, Settings::parse(settings)));
}

std::string error_of(const std::string& filter) {
  try {
    make_filter(filter, Wish{});
  } catch (const BadParameters& error) {
    return error.what();
  }
  return "no error";
}

Digest key(std::uint64_t number) {
  SplitMix64 random(number);
  const std::uint64_t lo = random.next();
  return {lo, random.next()};
}

std::uint64_t ones_of(const auto& filter) {
  BytesEncoder payload;
  filter.encode_payload(payload);
  std::uint64_t ones = 0;
  for (const std::byte byte : payload.written())
    ones += static_cast<unsigned>(__builtin_popcount(std::to_integer<unsigned>(byte)));
  return ones;
}

TEST(Stable, ACellIsSetToMaxAndReducedByOne) {
  // All 32 cells are reduced by each record, so what is seen is each key's own counting down.
  Stable filter = stable("bytes=8,probes=1,decrements=32,max=3");
  EXPECT_EQ(filter.observe(key(1)), Verdict::distinct);
  const Digest first = key(1);
  std::uint64_t other = 2;
  const auto cell = [&](const Digest& digest) { return probe_position(digest, 0, 32); };
  for (int left = 2; left >= 0; --left) {
    while (cell(key(other)) == cell(first)) ++other;
    filter.insert(key(other++));
    EXPECT_EQ(filter.may_contain(first), left > 0) << left;
  }
}

TEST(Stable, ARunGoesRoundTheEndOfTheTable) {
  // 63 of 64 cells are emptied before a key's own is set: one or two are left from any start.
  Stable filter = stable("bytes=8,probes=1,decrements=63");
  for (std::uint64_t number = 0; number < 500; ++number) {
    filter.insert(key(number));
    EXPECT_TRUE(filter.may_contain(key(number)));
    EXPECT_LE(ones_of(filter), 2u);
    EXPECT_EQ(filter.fill(), static_cast<double>(ones_of(filter)) / 64);
  }
}

TEST(Stable, CountsItsLiveCells) {
  for (const char* settings :
       {"bytes=512,probes=3,decrements=5", "bytes=512,probes=3,decrements=200",
        "bytes=512,probes=3,decrements=5,draws=independent", "bytes=512,fpr=0.01"}) {
    Stable filter = stable(settings);
    for (std::uint64_t number = 0; number < 3000; ++number) filter.insert(key(number));
    EXPECT_DOUBLE_EQ(filter.fill() * 4096, static_cast<double>(ones_of(filter))) << settings;
  }
}

TEST(Stable, IsPlannedForItsError) {
  // The paper's number, where the table is large; a small one leaves room for chance.
  EXPECT_EQ(stable("bytes=64KiB,probes=2,fpr=0.114").params().decrements, 4u);
  EXPECT_EQ(stable("bytes=2048,probes=2,fpr=0.114").params().decrements, 5u);
  // Small tables keep the distance, too.
  for (const std::uint64_t keys : {500u, 5'000u, 20'000u}) {
    const Stable::Params small = stable("max=3", {.keys = keys, .fpr = 0.05}).params();
    const double distance = model::stable_memory(small.shape()).mean_distance;
    EXPECT_GE(distance, 0.99 * static_cast<double>(keys)) << keys;
    EXPECT_LE(distance, 1.1 * static_cast<double>(keys)) << keys;
  }
  for (const double fpr : {0.1, 1e-3, 1e-6}) {
    const FilterStats stats = stable("bytes=1MiB", {.fpr = fpr}).stats();
    EXPECT_LE(stats.planned_fpr, fpr);
    EXPECT_GT(stats.planned_fpr, fpr / 2);
    EXPECT_EQ(stats.capacity, 0u);
  }
  // --expect is the distance that a key is remembered for on average.
  const Stable::Params sized = stable("", {.keys = 100'000, .fpr = 0.01}).params();
  EXPECT_NEAR(model::stable_memory(sized.shape()).mean_distance, 1e5, 100);
}

TEST(Reservoir, FollowsThePapersOperatingPoints) {
  const auto filters = [](const std::string& settings) {
    return reservoir("bytes=1KiB,fpr=0.1," + settings).params().filters;
  };
  EXPECT_EQ(filters("variant=paper,aim=few-false-negatives"), 1u);
  EXPECT_EQ(filters("variant=paper,aim=few-false-positives"), 5u);
  EXPECT_EQ(filters("variant=paper,aim=mean"), 3u);
  EXPECT_EQ(filters("aim=mean"), 3u);
  EXPECT_EQ(filters("variant=paper"), 4u);  // three would err in 1 of 8
}

TEST(Reservoir, IsPlannedForItsError) {
  for (const std::string variant : {"biased", "paper"})
    for (const double fpr : {0.3, 0.1, 1e-3, 1e-6})
      EXPECT_LE(reservoir("bytes=1MiB,variant=" + variant, {.fpr = fpr}).stats().planned_fpr,
                fpr * (1 + 1e-9));
  EXPECT_LE(reservoir("bytes=1KiB,fpr=0.01,filters=3").stats().planned_fpr, 0.01);
  EXPECT_LE(reservoir("bytes=1KiB,fpr=0.01,resets=2").stats().planned_fpr, 0.01);
  const Reservoir::Params sized = reservoir("", {.keys = 100'000, .fpr = 0.01}).params();
  EXPECT_NEAR(model::reservoir_memory(sized.shape()).mean_distance, 1e5, 100);
}

TEST(Reservoir, BiasedWritesWhatIsJudgedDistinctAndNothingElse) {
  Reservoir filter = reservoir("bytes=256,filters=3,resets=1");
  for (std::uint64_t number = 0; number < 4000; ++number) {
    BytesEncoder before, after;
    filter.encode_payload(before);
    const Verdict verdict = filter.observe(key(number % 700));
    filter.encode_payload(after);
    EXPECT_TRUE(filter.may_contain(key(number % 700)));
    EXPECT_EQ(before.take() == after.take(), verdict == Verdict::duplicate) << number;
  }
  EXPECT_EQ(filter.stats().keys, ones_of(filter) / 3);
}

// Algorithm 1 by the letter, with sets for filters.
class PlainReservoir {
 public:
  PlainReservoir(std::uint64_t size, unsigned filters, std::uint64_t seed)
      : size_(size), set_(filters), random_(seed) {}

  bool observe(const Digest& digest) {
    bool known = true;
    for (unsigned j = 0; j < set_.size(); ++j)
      known &= set_[j].contains(probe_position(digest, j, size_));
    ++i_;
    if (i_ <= size_ || scale_to(random_.next(), i_) < size_) {
      for (unsigned j = 0; j < set_.size(); ++j) {
        set_[j].erase(scale_to(random_.next(), size_));
        set_[j].insert(probe_position(digest, j, size_));
      }
    } else if (static_cast<double>(size_) <= 0.03 * static_cast<double>(i_) && !known) {
      for (unsigned j = 0; j < set_.size(); ++j) {
        const std::uint64_t at = probe_position(digest, j, size_);
        if (set_[j].contains(at)) continue;
        while (set_[j].erase(scale_to(random_.next(), size_)) == 0) {
        }
        set_[j].insert(at);
      }
    }
    return known;
  }

 private:
  std::uint64_t size_;
  std::vector<std::set<std::uint64_t>> set_;
  SplitMix64 random_;
  std::uint64_t i_ = 0;
};

TEST(Reservoir, ResetsRunRoundTheEndOfAFilter) {
  // 63 of 64 bits of each filter are reset before a key's own are set.
  Reservoir filter = reservoir("bytes=24,filters=3,resets=63");
  for (std::uint64_t number = 0; number < 500; ++number) {
    filter.insert(key(number));
    EXPECT_LE(ones_of(filter), 6u);
    EXPECT_EQ(filter.fill(), static_cast<double>(ones_of(filter)) / 192);
  }
}

TEST(Reservoir, PaperIsAlgorithm1) {
  Reservoir filter = reservoir("bytes=72,filters=3,variant=paper,seed=5");
  ASSERT_EQ(filter.params().size(), 192u);
  PlainReservoir plain(192, 3, 5);
  SplitMix64 random(1);
  int duplicates = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Digest digest = key(random.next() % 300);
    const bool known = plain.observe(digest);
    ASSERT_EQ(filter.observe(digest) == Verdict::duplicate, known) << i;
    duplicates += known;
  }
  EXPECT_GT(duplicates, 2000);
}

// A long run of one key leaves three bits set. Then every new key would search for them.
TEST(Reservoir, PaperNeverSearchesLong) {
  Reservoir filter = reservoir("bytes=1KiB,filters=3,variant=paper");
  for (int i = 0; i < 200'000; ++i) filter.insert(key(0));
  EXPECT_EQ(ones_of(filter), 3u);
  for (std::uint64_t number = 1; number < 2000; ++number) filter.insert(key(number));
  EXPECT_GT(ones_of(filter), 100u) << "where nothing was found to reset, the filter fills";
}

TEST(Forgetting, TheSeedDecides) {
  for (const std::string name : {"stable,bytes=128", "reservoir,bytes=128"}) {
    AnyFilter one = make_filter(name + ",fpr=0.1,seed=1", {});
    AnyFilter two = make_filter(name + ",fpr=0.1,seed=2", {});
    for (std::uint64_t number = 0; number < 500; ++number) {
      const Digest digest = key(number);
      one.insert({&digest, 1});
      two.insert({&digest, 1});
    }
    BytesEncoder first, second;
    one.encode_payload(first);
    two.encode_payload(second);
    EXPECT_NE(first.take(), second.take()) << name;
  }
}

TEST(Forgetting, ErrorsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of("reservoir,filters=1,resets=1"),
            "filter 'reservoir' would fill up with one filter and one reset: it takes more of "
            "either");
  EXPECT_EQ(error_of("reservoir,filters=3,aim=mean"),
            "filter 'reservoir' takes either filters or aim: one follows the other");
  EXPECT_EQ(error_of("reservoir,threshold=0.1"),
            "filter 'reservoir' has a threshold with variant=paper only");
  EXPECT_EQ(error_of("reservoir,variant=paper,resets=2"),
            "filter 'reservoir' has resets with variant=biased only");
  EXPECT_EQ(error_of("reservoir,filters=2,fpr=1e-9"),
            "filter 'reservoir' cannot hold that error with so few filters: name more, or raise "
            "fpr");
  EXPECT_EQ(error_of("reservoir,bytes=16,filters=3,resets=1"),
            "filter 'reservoir' takes 8 bytes per filter at least");
  EXPECT_EQ(error_of("stable,decrements=3"),
            "filter 'stable' takes decrements only together with probes: name both");
  EXPECT_EQ(error_of("stable,bytes=8,probes=1,decrements=65"),
            "filter 'stable' takes 1 to 65536 decrements, and no more than it has cells");
  EXPECT_NE(error_of("stable,max=16"), "no error");
}

// Bytes that no filter writes.
template <class F>
std::string corruption(const F& filter, std::size_t header_at, std::byte value,
                       std::size_t payload_at, std::byte payload_value) {
  BytesEncoder header, payload;
  filter.encode_header(header);
  filter.encode_payload(payload);
  std::vector<std::byte> fields = header.take(), table = payload.take();
  if (header_at < fields.size()) fields[header_at] = value;
  if (payload_at < table.size()) table[payload_at] = payload_value;
  BytesDecoder from_header(fields), from_payload(table);
  try {
    F::decode(from_header, from_payload);
  } catch (const CorruptSnapshot& error) {
    return error.what();
  }
  return "no error";
}

TEST(Forgetting, HostileSnapshotsAreRefused) {
  constexpr std::size_t kNone = ~std::size_t{0};
  const Stable cells = stable("bytes=64,probes=2,decrements=4,max=2");
  EXPECT_EQ(corruption(cells, kNone, {}, kNone, {}), "no error");
  EXPECT_EQ(corruption(cells, kNone, {}, 9, std::byte{0x0C}),
            "filter 'stable' has a cell above its maximum");
  EXPECT_NE(corruption(cells, 0, std::byte{0x40}, kNone, {}), "no error") << "another size";
  EXPECT_NE(corruption(cells, 16, std::byte{0}, kNone, {}), "no error") << "no maximum";
  EXPECT_NE(corruption(cells, 20, std::byte{2}, kNone, {}), "no error") << "unknown draws";
  const Reservoir bits = reservoir("bytes=64,filters=3,resets=1");  // 6 of 8 words
  EXPECT_EQ(corruption(bits, kNone, {}, kNone, {}), "no error");
  EXPECT_EQ(corruption(bits, kNone, {}, 48, std::byte{1}),
            "filter 'reservoir' has bits set beyond its filters");
  EXPECT_EQ(corruption(bits, kNone, {}, 47, std::byte{0x80}), "no error");
  EXPECT_NE(corruption(bits, 8, std::byte{9}, kNone, {}), "no error") << "more filters than words";
  EXPECT_NE(corruption(bits, 8, std::byte{0}, kNone, {}), "no error") << "no filters";
  EXPECT_NE(corruption(bits, 12, std::byte{2}, kNone, {}), "no error") << "unknown variant";
  EXPECT_NE(corruption(bits, 13, std::byte{0}, kNone, {}), "no error") << "no resets";
}

}  // namespace
}  // namespace sluice
