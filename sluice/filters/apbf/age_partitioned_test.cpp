// Segments that are emptied step by step against segments that are emptied at once: whatever the stream
// does, verdicts are the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sluice/base/random.hpp"
#include "sluice/filters/apbf/apbbf.hpp"
#include "sluice/filters/apbf/apbf.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

// The same table, of which a rotation empties the new youngest segment at once.
template <class P>
class AtOnce {
 public:
  explicit AtOnce(const P& params)
      : params_(params),
        memory_(params.table_bytes(), default_memory()),
        fresh_((params.units() + 63) / 64) {}

  void rotate() {
    youngest_ = (youngest_ + params_.k + params_.l - 1) % (params_.k + params_.l);
    for (std::uint64_t unit = 0; unit < params_.units(); ++unit) table().empty(unit);
  }
  std::vector<Verdict> admit(const std::vector<Digest>& digests, Anchor anchor) {
    std::vector<Verdict> verdicts(digests.size());
    kernels::AgeBatch batch;
    std::array<std::uint64_t, kernels::kMostParts + 1> again{};
    batch.again = again.data();
    batch.digests = digests.data();
    batch.count = batch.room = digests.size();
    batch.verdicts = verdicts.data();
    batch.refresh = anchor == Anchor::refreshed;
    table().admit(batch);
    return verdicts;
  }
  Verdict admit_aged(const Digest& digest, unsigned age, Anchor anchor) {
    Verdict verdict{};
    table().ask(&digest, 1, &verdict);
    const bool known = verdict == Verdict::duplicate;
    if (!known || (anchor == Anchor::refreshed && !table().holds(digest, age)))
      table().write(digest, age);
    return verdict;
  }

 private:
  auto table() { return params_.table(memory_, fresh_.data(), youngest_, {}); }

  P params_;
  LineTable memory_;
  std::vector<std::uint64_t> fresh_;
  unsigned youngest_ = 0;
};

// Full generations, sparse ones, idle times of some generations and of many, late keys.
template <class P>
class Both {
 public:
  Both(const P& params, Anchor anchor, std::uint64_t seed)
      : filter_(AgePartitioned<P>::make(params)),
        at_once_(params),
        anchor_(anchor),
        random_(seed),
        full_(params.generation_keys() * 3 / 4) {}

  void run(unsigned phases) {
    for (unsigned phase = 0; phase < phases && !testing::Test::HasFailure(); ++phase) {
      const std::uint64_t generations = 1 + random_.next() % (filter_.generations() + 3);
      switch (random_.next() % 5) {
        case 0:
          for (unsigned i = 0; i < 3; ++i) generation(full_);
          break;
        case 1:
          for (std::uint64_t i = 0; i < generations; ++i) generation(1 + random_.next() % 20);
          break;
        case 2:
          for (std::uint64_t i = 0; i < generations; ++i) generation(random_.next() % (full_ / 8));
          break;
        case 3:
          for (std::uint64_t i = 0; i < generations; ++i) rotate();
          break;
        default:
          generation(full_ / 3);
          filter_ = testing_support::copy_of(filter_);
      }
    }
  }

 private:
  void rotate() {
    filter_.rotate();
    at_once_.rotate();
  }
  Digest key() {
    if (!recent_.empty() && random_.next_unit() < 0.3)
      return recent_[recent_.size() - 1 -
                     random_.next() % std::min<std::size_t>(recent_.size(), 4 * full_)];
    recent_.push_back({random_.next(), random_.next()});
    return recent_.back();
  }
  void generation(std::uint64_t keys) {
    rotate();
    std::vector<Digest> digests(keys);
    for (Digest& digest : digests) digest = key();
    std::vector<Verdict> verdicts(keys);
    std::uint64_t budget = keys;
    ASSERT_EQ(filter_.admit(digests, verdicts, budget, anchor_), keys);
    ASSERT_EQ(verdicts, at_once_.admit(digests, anchor_));
    for (unsigned i = 0; i < 4; ++i) {
      const auto age = static_cast<unsigned>(random_.next() % (filter_.generations() + 1));
      const Digest late = key();
      ASSERT_EQ(filter_.admit_aged(late, age, anchor_), at_once_.admit_aged(late, age, anchor_));
    }
  }

  AnyFilter filter_;
  AtOnce<P> at_once_;
  Anchor anchor_;
  SplitMix64 random_;
  std::uint64_t full_;
  std::vector<Digest> recent_;
};

template <class P>
void expect_equal(std::initializer_list<std::pair<std::string_view, std::string_view>> settings) {
  Settings all;
  for (const auto& [name, value] : settings) all.add(name, value);
  const P params = P::from(Wish{}, all);
  for (const Anchor anchor : {Anchor::delivered, Anchor::refreshed})
    Both<P>(params, anchor, 1).run(testing_support::count_of<unsigned>(40, 400));
}

TEST(AgePartitionSweep, Apbf) {
  expect_equal<ApbfParams>({{"k", "4"}, {"l", "3"}, {"keys", "30k"}});
  expect_equal<ApbfParams>({{"k", "9"}, {"l", "5"}, {"keys", "30k"}});
  expect_equal<ApbfParams>({{"k", "2"}, {"l", "4"}, {"parts", "3"}, {"keys", "30k"}});
  expect_equal<ApbfParams>({{"k", "3"}, {"l", "0"}, {"keys", "20k"}});
  expect_equal<ApbfParams>({{"k", "1"}, {"l", "0"}, {"keys", "20k"}});
}

TEST(AgePartitionSweep, Segments) {
  expect_equal<ApbbfParams>({{"k", "2"}, {"l", "5"}, {"bits", "8"}, {"keys", "30k"}});
  expect_equal<ApbbfParams>(
      {{"k", "3"}, {"l", "8"}, {"block", "64"}, {"bits", "4"}, {"keys", "30k"}});
}

TEST(AgePartitionSweep, Columns) {
  expect_equal<ApbbfParams>(
      {{"layout", "column"}, {"k", "2"}, {"l", "5"}, {"bits", "8"}, {"keys", "20k"}});
  expect_equal<ApbbfParams>({{"layout", "column"},
                             {"k", "3"},
                             {"l", "8"},
                             {"block", "64"},
                             {"bits", "4"},
                             {"keys", "20k"}});
  expect_equal<ApbbfParams>(
      {{"layout", "column"}, {"k", "4"}, {"l", "14"}, {"bits", "8"}, {"keys", "30k"}});
  expect_equal<ApbbfParams>({{"layout", "column"},
                             {"k", "4"},
                             {"l", "14"},
                             {"block", "64"},
                             {"bits", "8"},
                             {"keys", "30k"}});
}

TEST(AgePartitionSweep, Lines) {
  expect_equal<ApbbfParams>({{"layout", "line"}, {"k", "5"}, {"l", "11"}, {"keys", "10k"}});
  expect_equal<ApbbfParams>({{"layout", "line"}, {"k", "3"}, {"l", "5"}, {"keys", "10k"}});
  expect_equal<ApbbfParams>({{"layout", "line"}, {"k", "12"}, {"l", "20"}, {"keys", "20k"}});
}

}  // namespace
}  // namespace sluice
