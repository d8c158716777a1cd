// A judge whose memory is refused at any call, once or from then on: it says how many keys it has judged, and has
// judged these and no others. Its audit costs no verdict.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/filters/catalogue.hpp"
#include "sluice/judge/judge.hpp"
#include "tests/support/digests.hpp"

namespace sluice {
namespace {

using testing_support::random_digests;

constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr Nanoseconds kNow = 1'700'000'000 * kSecond;

// Refuses the n-th block, and those that follow if it lasts.
class Refusing final : public MemoryResource {
 public:
  void refuse(std::uint64_t call, bool lasts) noexcept {
    calls_ = 0;
    call_ = call;
    lasts_ = lasts;
  }
  bool has_refused() const noexcept { return has_refused_; }
  std::size_t usable(const void*, std::size_t bytes, std::size_t) const noexcept override {
    return bytes;
  }
  std::size_t largest_block() const noexcept override { return kLeastLargest; }

 private:
  void* get(std::size_t bytes, std::size_t alignment) noexcept override {
    ++calls_;
    if (call_ != 0 && (calls_ == call_ || (lasts_ && calls_ > call_))) {
      has_refused_ = true;
      return nullptr;
    }
    return ::operator new(bytes, std::align_val_t(alignment), std::nothrow);
  }
  void put(void* block, std::size_t, std::size_t alignment) noexcept override {
    ::operator delete(block, std::align_val_t(alignment));
  }

  std::uint64_t calls_ = 0, call_ = 0;
  bool lasts_ = false, has_refused_ = false;
};

using Make = AnyFilter (*)(MemoryResource&);

AnyFilter window(WindowSpec spec, MemoryResource& memory) {
  return AnyFilter(Window::make({.spec = spec, .fpr = 1e-9}, memory));
}

constexpr Make kFilters[] = {
    [](MemoryResource& memory) { return make_filter("exact", {}, memory); },
    [](MemoryResource& memory) { return make_filter("growing", {.fpr = 1e-9}, memory); },
    [](MemoryResource& memory) {
      return window({WindowSpec::Kind::time, 600 * kSecond}, memory);
    },
    [](MemoryResource& memory) {
      return window({WindowSpec::Kind::count, 10'000}, memory);
    },
};

std::unique_ptr<Judge> judge_of(Make make, MemoryResource& memory, bool meters) {
  return std::make_unique<Judge>(
      Hasher(HashKind::xxh3, Secret::from_seed(3)), make(memory),
      JudgeOptions{.audit = Audit::Params{.sample = 1}, .claims = 2000, .meters = meters});
}

// Calls `work` for every call of the resource that may be refused.
template <class Work>
void refuse_each(const Work& work) {
  for (std::size_t filter = 0; filter < std::size(kFilters); ++filter)
    for (const bool meters : {false, true})
      for (const bool lasts : {false, true})
        for (std::uint64_t call = 1;; ++call) {
          SCOPED_TRACE(testing::Message() << "filter " << filter << ", meters " << meters
                                          << ", lasts " << lasts << ", call " << call);
          Refusing memory;
          const auto judge = judge_of(kFilters[filter], memory, meters);
          work(*judge, memory, call, lasts);
          if (testing::Test::HasFatalFailure()) return;
          if (!memory.has_refused()) break;
        }
}

TEST(JudgeMemory, ABatchSaysHowManyKeysItJudged) {
  const std::vector<Digest> digests = random_digests(21, 3000);
  std::uint64_t stopped = 0, halved = 0;
  refuse_each([&](Judge& judge, Refusing& memory, std::uint64_t call, bool lasts) {
    std::vector<Verdict> verdicts(digests.size());
    std::vector<Verdict> found(digests.size());
    memory.refuse(call, lasts);
    std::size_t judged = 0;
    while (judged < digests.size()) {
      const std::size_t count = std::min<std::size_t>(512, digests.size() - judged);
      const auto part = std::span(verdicts).subspan(judged, count);
      std::size_t done = 0;
      ASSERT_NO_THROW(done = judge.judge({.digests = std::span(digests).subspan(judged, count),
                                          .verdicts = part,
                                          .now = kNow}));
      ASSERT_EQ(std::ranges::count(part.first(done), Verdict::duplicate), 0);
      judged += done;
      if (done < count) break;
    }
    ASSERT_EQ(judge.filter().stats().keys, judged);
    judge.filter().may_contain(digests, found);
    ASSERT_EQ(std::ranges::count(std::span(found).first(judged), Verdict::distinct), 0);
    ASSERT_EQ(std::ranges::count(std::span(found).subspan(judged), Verdict::duplicate), 0);
    const Audit::Report report = judge.audit()->report();
    ASSERT_EQ(report.positives.errors, 0);
    ASSERT_EQ(report.negatives.errors, 0);
    stopped += judged < digests.size();
    halved += report.doublings > 0;
    memory.refuse(0, false);
    const auto rest = std::span(digests).subspan(judged);
    ASSERT_EQ(judge.judge(
                  {.digests = rest, .verdicts = std::span(verdicts).subspan(judged), .now = kNow}),
              rest.size());
    ASSERT_EQ(std::ranges::count(verdicts, Verdict::duplicate), 0);
  });
  EXPECT_GT(stopped, 10u);
  EXPECT_GT(halved, 10u);
}

TEST(JudgeMemory, WhatIsConfirmedIsKept) {
  const std::vector<Digest> digests = random_digests(22, 700);
  const Digest token{1, 2};
  std::uint64_t kept = 0, halved = 0;
  refuse_each([&](Judge& judge, Refusing& memory, std::uint64_t call, bool lasts) {
    const auto claim = [&](const Digest& key) {
      return judge.claim({.key = key, .token = token, .now = kNow, .lease = kSecond});
    };
    std::vector<Digest> claimed;
    memory.refuse(call, lasts);
    for (const Digest& key : digests) {
      try {
        ASSERT_EQ(claim(key), ClaimAnswer::claimed);
        claimed.push_back(key);
      } catch (const NoMemory&) {
      }
    }
    for (const Digest& key : claimed) {
      ConfirmAnswer answer{};
      ASSERT_NO_THROW(answer = judge.confirm({.key = key, .token = token, .now = kNow}));
      ASSERT_EQ(answer, ConfirmAnswer::confirmed);
    }
    kept += judge.claims()->size() > 0;
    for (const Digest& key : claimed) ASSERT_EQ(claim(key), ClaimAnswer::duplicate);
    halved += judge.audit()->report().doublings > 0;
    memory.refuse(0, false);
    judge.tend(kNow + 10 * kSecond, digests.size());
    ASSERT_EQ(judge.claims()->size(), 0u);
    ASSERT_EQ(judge.filter().stats().keys, claimed.size());
    ASSERT_EQ(judge.audit()->report().positives.errors, 0);
  });
  EXPECT_GT(kept, 10u);
  EXPECT_GT(halved, 10u);
}

}  // namespace
}  // namespace sluice
