// A state that a window of ours wrote can be loaded, however its stages came to be what they are.
#include <gtest/gtest.h>

#include <vector>

#include "sluice/base/error.hpp"
#include "sluice/window/window.hpp"
#include "tests/support/counts.hpp"
#include "tests/support/digests.hpp"
#include "tests/support/filter_bytes.hpp"

namespace sluice {
namespace {

using testing_support::bytes_of;
using testing_support::count_of;

constexpr Nanoseconds kSecond = 1'000'000'000;

// Errors that later stages cannot reach, and far more keys than were expected: the stages that a state
// brings are far smaller, for their keys, than the first one was.
TEST(WindowSnapshot, OfAWindowThatGrewMuchCanBeLoaded) {
  std::size_t loaded = 0;
  const std::vector<double> all = {1e-6, 1e-60, 1e-15, 1e-300};  // the last takes long
  const auto fprs = std::span(all).first(count_of(2, 4, 4));
  for (const char* filter : {"cohort", "cohort,slot=16", "apbf", "apbbf", "timing", "timer",
                             "exact-window", "sharded,of=cohort"})
    for (const double fpr : fprs)
      for (const std::uint64_t expected : {1u, 50u})
        for (const std::optional<std::uint64_t> memory :
             {std::optional<std::uint64_t>{}, std::optional<std::uint64_t>{1 << 20}}) {
          Window::Params params{.spec = {WindowSpec::Kind::time, 600 * kSecond},
                                .filter = filter,
                                .fpr = fpr,
                                .keys = expected,
                                .memory = memory};
          std::optional<Window> window;
          try {
            window.emplace(Window::make(params));
          } catch (const std::exception&) {
            continue;  // not to be had
          }
          const auto digests = testing_support::random_digests(expected, count_of(600, 3000, 3000));
          std::vector<Verdict> verdicts(digests.size() / 2);
          for (std::size_t at = 0; at < digests.size(); at += verdicts.size()) {
            window->arrive(1'700'000'000 * kSecond + static_cast<Nanoseconds>(at) * kSecond / 8);
            const std::size_t judged =
                window->observe(std::span(digests).subspan(at, verdicts.size()), verdicts);
            BytesEncoder header, payload;
            window->encode_header(header);
            window->encode_payload(payload);
            BytesDecoder from_header(header.written()), from_payload(payload.written());
            try {
              const Window copy = Window::decode(from_header, from_payload);
              ASSERT_EQ(bytes_of(copy), bytes_of(*window));
              ++loaded;
            } catch (const CorruptSnapshot& error) {
              FAIL() << filter << ", fpr " << fpr << ", " << expected << " keys, after " << at
                     << ": " << error.what();
            }
            if (judged < verdicts.size()) break;  // its memory is used up
          }
        }
  EXPECT_GT(loaded, count_of(50u, 100u, 100u));
}

}  // namespace
}  // namespace sluice
