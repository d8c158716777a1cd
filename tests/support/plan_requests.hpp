// Requests to the planner, made up.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <string>

#include "sluice/base/random.hpp"
#include "sluice/plan/plan.hpp"

namespace sluice::testing_support {

inline WindowSpec last(std::uint64_t keys) {
  return {WindowSpec::Kind::count, keys};
}

inline WindowSpec seconds(std::uint64_t count) {
  return {WindowSpec::Kind::time, count * 1'000'000'000};
}

inline constexpr std::uint64_t kLeastMemory = std::uint64_t{1} << 20;

// Any sensible subset of what can be asked for.
inline PlanRequest random_request(SplitMix64& random) {
  const auto unit = [&] { return random.next_unit(); };
  const auto sometimes = [&](double chance) { return unit() < chance; };
  PlanRequest request;
  const auto keys = static_cast<std::uint64_t>(std::pow(10, 1 + 6 * unit()));
  const double kind = unit();
  if (kind < 0.4)
    request.window = last(keys);
  else if (kind < 0.6)
    request.window = seconds(1 + random.next() % 10'000);
  else if (kind < 0.95)
    request.expect = keys;
  if (request.window && request.window->by_time()) request.rate = std::pow(10, 4 * unit());
  if (sometimes(0.3)) request.anchor = Anchor::refreshed;
  if (sometimes(0.7)) request.fpr = std::pow(10, -8 * unit() - 0.5);
  if (sometimes(0.3) || !(request.window || request.expect))
    request.memory = static_cast<std::uint64_t>(std::pow(10, 4 + 5 * unit())) + kLeastMemory;
  if (request.window && sometimes(0.2)) request.slack = std::pow(10, -2 * unit());
  if (request.window && sometimes(0.1)) request.npws = std::pow(10, -2 * unit());
  if (sometimes(0.15)) request.lines = 1 + 30 * unit() * unit();
  if ((request.window || request.expect) && sometimes(0.1)) request.fnr = 0.9 * unit() + 0.05;
  return request;
}

inline std::string text_of(const PlanRequest& request) {
  const auto show = [](const auto& value) {
    return value ? fmt::format("{}", *value) : std::string("-");
  };
  return fmt::format(
      "window {} rate {} expect {} fpr {} fnr {} slack {} npws {} lines {} memory {}",
      request.window
          ? fmt::format("{}:{}", static_cast<int>(request.window->kind), request.window->size)
          : "-",
      show(request.rate), show(request.expect), show(request.fpr), show(request.fnr),
      show(request.slack), show(request.npws), show(request.lines), show(request.memory));
}

}  // namespace sluice::testing_support
