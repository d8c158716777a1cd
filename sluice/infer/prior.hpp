// What is known of a key before the filter is asked.
#pragma once

#include <cstdint>

namespace sluice {

struct Prior {
  enum class Kind : std::uint8_t {
    unknown,
    arrival,   // the chance that the next arrival has this key
    in_window  // the chance that this arrival's key is in the window
  };

  Kind kind = Kind::unknown;
  double chance = 0;

  // Values that are no chance between 0 and 1, both excluded, are not known.
  static Prior arrival(double chance) noexcept { return make(Kind::arrival, chance); }
  static Prior in_window(double chance) noexcept { return make(Kind::in_window, chance); }

  bool known() const noexcept { return kind != Kind::unknown; }
  friend bool operator==(const Prior&, const Prior&) = default;

 private:
  static Prior make(Kind kind, double chance) noexcept {
    return chance > 0 && chance < 1 ? Prior{kind, chance} : Prior{};
  }
};

}  // namespace sluice
