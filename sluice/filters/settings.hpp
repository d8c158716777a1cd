// A filter's parameters as text: as a person writes them after its name, and as they are shown.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

// Description of one parameter, for `sluice filters` and for errors.
struct ParameterInfo {
  std::string_view name;
  std::string_view meaning;
  std::string_view range;
  std::string_view standard;  // its default
};

// name=value pairs in their order; names are unique.
class Settings {
 public:
  // "layout=classic,probes=12". Throws BadParameters; an empty text is no settings.
  static Settings parse(std::string_view text);

  void add(std::string_view name, std::string_view value);
  void add(std::string_view name, std::uint64_t value);
  void add(std::string_view name, double value);

  const std::vector<std::pair<std::string, std::string>>& pairs() const& noexcept { return pairs_; }
  void pairs() const&& = delete;  // the pairs of a temporary would dangle in a range-for
  std::string text() const;
  friend bool operator==(const Settings&, const Settings&) = default;

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// Reads settings one by one and throws an error that names the filter if one is wrong or left over.
class SettingsReader {
 public:
  SettingsReader(std::string_view filter, const Settings& settings,
                 std::span<const ParameterInfo> known);

  // Each returns nothing when the parameter was not given, and throws BadParameters, with the
  // range, when its value is not a number or is outside [least, most].
  std::optional<std::uint64_t> count(std::string_view name, std::uint64_t least,
                                     std::uint64_t most) const;
  std::optional<std::uint64_t> size(std::string_view name, std::uint64_t least,
                                    std::uint64_t most) const;
  std::optional<double> probability(std::string_view name) const;
  std::optional<std::string> choice(std::string_view name,
                                    std::span<const std::string_view> choices) const;

 private:
  const std::string* find(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view value,
                           std::string_view expected) const;
  std::string filter_;
  Settings settings_;
};

// What a person wants of a filter of any kind.
struct Wish {
  std::optional<std::uint64_t> keys = {};    // --expect; for a window filter: keys per window
  double fpr = 1e-6;                         // --fpr
  std::optional<unsigned> generations = {};  // window filters: generations per window
  bool brief = false;  // a forecast may leave out lines and settings: faster, for searches
};

// Keys that a filter is planned for if no number is given; the command then says so.
inline constexpr std::uint64_t kStandardCapacity = 8'000'000;

}  // namespace sluice
