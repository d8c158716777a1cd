#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "sluice/audit/audit.hpp"
#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"
#include "tests/support/forged_fields.hpp"

namespace sluice {
namespace {

using testing_support::copy_of;
using testing_support::count_of;
using testing_support::digest_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

struct Sample {
  std::string name;
  std::function<AnyFilter()> make;
  bool timed = false;
};

std::vector<Sample> samples() {
  const auto window = [](WindowSpec spec, Anchor anchor) {
    return [=] {
      return AnyFilter(Window::make({.spec = spec, .anchor = anchor, .fpr = 0.05, .keys = 300}));
    };
  };
  return {{"set", [] { return make_filter("bloom,bytes=2KiB,keys=2000,fpr=0.05", {}); }},
          {"count", window({WindowSpec::Kind::count, 500}, Anchor::refreshed)},
          {"time", window({WindowSpec::Kind::time, 100 * kSecond}, Anchor::delivered), true},
          {"hour", window({WindowSpec::Kind::landmark, 3600 * kSecond}, Anchor::delivered), true}};
}

// A stream with repeats, some of which come late.
void run(AnyFilter& filter, Audit& audit, bool timed, std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t i = from; i < to; ++i) {
    const Digest digest = digest_of(i % 3 == 2 ? i / 2 : i);
    const Nanoseconds time =
        (1'700'000'000 + Nanoseconds(i) / 4 - (i % 31 == 0 ? 40 : 0)) * kSecond;
    Verdict verdict{};
    bool late = false;
    if (timed) {
      ASSERT_EQ(filter.window()->judge({&digest, 1}, {&time, 1}, {&verdict, 1}, {&late, 1}), 1u);
      audit.observe({&digest, 1}, {&verdict, 1}, {&time, 1}, {&late, 1});
    } else {
      ASSERT_EQ(filter.observe({&digest, 1}, {&verdict, 1}), 1u);
      audit.observe({&digest, 1}, {&verdict, 1});
    }
    if (filter.can_forget() && i % 97 == 5) audit.forget(digest, filter.forget(digest));
  }
}

std::vector<std::byte> bytes_of(const Audit& audit) {
  BytesEncoder to;
  audit.encode(to);
  return to.take();
}

class AuditSnapshot : public testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(Filters, AuditSnapshot, testing::ValuesIn(samples()),
                         [](const auto& test) { return test.param.name; });

// Half of it is dropped on the way, and ghosts are asked.
TEST_P(AuditSnapshot, GoesOnAsTheOneThatWasEncoded) {
  constexpr std::uint64_t kHalf = 6000, kAll = 20'000;
  const Audit::Params params{.sample = 2, .most_bytes = 32 << 10, .seed = 7};
  AnyFilter filter = GetParam().make();
  Audit audit(params, filter);
  run(filter, audit, GetParam().timed, 0, kHalf);

  AnyFilter other = copy_of(filter);
  Audit resumed({.sample = 2, .most_bytes = 32 << 10, .seed = 99, .fresh = false}, other);
  const std::vector<std::byte> bytes = bytes_of(audit);
  BytesDecoder from(bytes);
  resumed.decode(from);
  EXPECT_EQ(bytes_of(resumed), bytes);
  EXPECT_LE(bytes.size(), 48 * audit.report().keys + 400);

  run(filter, audit, GetParam().timed, kHalf, kAll);
  run(other, resumed, GetParam().timed, kHalf, kAll);
  EXPECT_EQ(bytes_of(resumed), bytes_of(audit));
  const Audit::Report one = audit.report(), two = resumed.report();
  EXPECT_EQ(one.positives.trials, two.positives.trials);
  EXPECT_EQ(one.positives.errors, two.positives.errors);
  EXPECT_EQ(one.knows_all, two.knows_all);
  EXPECT_GT(one.ghosts.trials, 0);
  EXPECT_GT(one.positives.trials, 50);
}

TEST_P(AuditSnapshot, ForgedOnesAreRefusedOrWork) {
  const Audit::Params params{.sample = 16, .most_bytes = 32 << 10};
  AnyFilter filter = GetParam().make();
  Audit audit(params, filter);
  run(filter, audit, GetParam().timed, 0, 300);
  testing_support::FieldEncoder good;
  audit.encode(good);
  std::size_t refused = 0, used = 0;
  unsigned cases = 0;
  const unsigned each = count_of(4u, 1u, 1u);
  for (std::size_t i = 0; i < std::min<std::size_t>(good.fields.size(), 60); ++i)
    for (const auto& forged : testing_support::forgeries_of(good.fields[i])) {
      if (++cases % each != 0) continue;
      testing_support::FieldEncoder bad = good;
      bad.fields[i] = forged;
      const std::vector<std::byte> bytes = bad.joined();
      AnyFilter copy = copy_of(filter);
      Audit read(params, copy);
      const std::vector<std::byte> before = bytes_of(read);
      BytesDecoder from(bytes);
      try {
        read.decode(from);
      } catch (const Error&) {
        EXPECT_EQ(bytes_of(read), before) << "refused, and changed";
        ++refused;
        continue;
      }
      EXPECT_EQ(bytes_of(read), bytes) << "a state has one form: field " << i;
      run(copy, read, GetParam().timed, 300, 900);
      EXPECT_LE(read.bytes(), params.most_bytes);
      const std::vector<std::byte> own = bytes_of(read);
      BytesDecoder again(own);
      EXPECT_NO_THROW(Audit(params, copy).decode(again)) << "its own bytes, field " << i;
      ++used;
    }
  EXPECT_GT(refused, 500u / each);
  EXPECT_GT(used, 50u / each);
}

TEST(AuditSnapshot, ASampleThatMayNotBeSoLargeIsRefusedWithASentence) {
  AnyFilter filter = make_filter("exact", {});
  Audit audit({.sample = 1}, filter);
  run(filter, audit, false, 0, 3000);
  const std::vector<std::byte> bytes = bytes_of(audit);
  Audit small({.sample = 1, .most_bytes = 8192}, filter);
  BytesDecoder from(bytes);
  EXPECT_THROW(small.decode(from), BadParameters);
}

// Else 16,000 of them would be searched for through one another. Not refused: whoever knows the
// secret can send such keys, and the filter must not be lost for that.
TEST(AuditSnapshot, KeysThatAreNoDigestsAreDropped) {
  AnyFilter filter = make_filter("exact", {});
  Audit audit({.sample = 1}, filter);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Digest digest{i << 32, i};
    const Verdict verdict = Verdict::distinct;
    audit.observe({&digest, 1}, {&verdict, 1});
  }
  const std::vector<std::byte> bytes = bytes_of(audit);
  Audit other({.sample = 1}, filter);
  BytesDecoder from(bytes);
  other.decode(from);
  EXPECT_EQ(other.report().keys, 0u);
  EXPECT_FALSE(other.report().knows_all);
  EXPECT_EQ(other.report().positives.trials, 200);
}

// A lost event is marked in the lowest bit of the sample word, and one in 7 has an even threshold:
// the last key of the sample is beyond it when it is lost.
TEST(AuditSnapshot, TheLastKeyOfASampleMayBeLost) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max() / 7;
  const Digest last{0, kLast << 32 | kLast >> 32};
  ASSERT_TRUE(Audit::in_sample(last, 7));
  AnyFilter filter = make_filter("exact", {});
  Audit audit({.sample = 7}, filter);
  const Verdict lost = Verdict::duplicate;
  audit.observe({&last, 1}, {&lost, 1});
  EXPECT_EQ(audit.report().positives.errors, 1);
  const std::vector<std::byte> bytes = bytes_of(audit);
  Audit other({.sample = 7}, filter);
  BytesDecoder from(bytes);
  other.decode(from);
  EXPECT_EQ(bytes_of(other), bytes);
}

// A key that is in every sample, however small.
Digest in_every_sample(std::uint64_t i) {
  const auto low = static_cast<std::uint32_t>(i + 1);
  const Digest digest{low, static_cast<std::uint32_t>(-(low * 0x9E3779B1u))};
  EXPECT_TRUE(Audit::in_sample(digest, std::uint64_t{1} << 63));
  return digest;
}

std::vector<std::byte> forged_sample(std::uint64_t sample, unsigned doublings,
                                     std::uint64_t slots) {
  BytesEncoder to;
  to.u8(1);
  to.u8(1);
  to.varint(sample);
  to.varint(doublings);
  for (std::size_t i = 0; i < KeySums::kNumbers + 3; ++i) to.f64(0);
  for (int i = 0; i < 3; ++i) to.u64(0);
  EventClock().encode(to);
  Ghosts(5, true).encode(to);
  to.varint(slots);
  to.varint(slots / 4 * 3);
  for (std::uint64_t i = 0; i < slots / 4 * 3; ++i) {
    const Digest digest = in_every_sample(i);
    for (const std::uint64_t word : {digest.lo, digest.hi, std::uint64_t{0}}) to.u64(word);
    for (int count = 0; count < 6; ++count) to.u32(0);
  }
  return to.take();
}

// It is read, and the audit starts anew when it is full.
TEST(AuditSnapshot, ASampleThatCannotBeHalvedIsDropped) {
  struct Case {
    unsigned doublings;
    std::uint64_t slots, most_bytes;
  };
  constexpr std::uint64_t kFew = Shadow::kFirstSlots, kLittle = Audit::kLeastBytes;
  for (const auto& [doublings, slots, most_bytes] :
       {Case{0, kFew, kLittle}, Case{1, kFew, kLittle}, Case{40, kFew, kLittle},
        Case{62, kFew, kLittle}, Case{63, kFew, kLittle}, Case{0, 256, 32 << 10},
        Case{0, 16'384, 1 << 20}}) {
    AnyFilter filter = make_filter("exact", {});
    Audit audit({.sample = 1, .most_bytes = most_bytes}, filter);
    const std::vector<std::byte> bytes =
        forged_sample(std::uint64_t{1} << doublings, doublings, slots);
    BytesDecoder from(bytes);
    audit.decode(from);
    EXPECT_EQ(bytes_of(audit), bytes);
    EXPECT_TRUE(audit.report().knows_all);
    for (std::uint64_t i = 100'000; i < 104'000; ++i) {
      const Digest digest = in_every_sample(i);
      Verdict verdict{};
      ASSERT_EQ(filter.observe({&digest, 1}, {&verdict, 1}), 1u);
      audit.observe({&digest, 1}, {&verdict, 1});
    }
    EXPECT_EQ(audit.report().sample, std::uint64_t{1} << doublings);
    EXPECT_FALSE(audit.report().knows_all);
    EXPECT_LE(audit.bytes(), most_bytes);
    // Bytes of its own making are read.
    const std::vector<std::byte> own = bytes_of(audit);
    BytesDecoder again(own);
    audit.decode(again);
    EXPECT_EQ(bytes_of(audit), own);
  }
}

}  // namespace
}  // namespace sluice
