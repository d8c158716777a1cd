// A filter's parameters as text: what a person writes after its name, and what is shown of a
// filter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

// What is told about one parameter, by `sluice filters` and by errors.
struct ParameterInfo {
  std::string_view name;
  std::string_view meaning;
  std::string_view range;
  std::string_view standard;  // what it is when not given
};

// name=value pairs in their order, no name twice.
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

// Takes settings one by one and complains about what is wrong or left over, always naming the
// filter.
class SettingsReader {
 public:
  SettingsReader(std::string_view filter, const Settings& settings,
                 std::span<const ParameterInfo> known);

  // Each returns nothing when the parameter was not given, and throws BadParameters, with the
  // range, when its value is no number or lies outside [least, most].
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

// What a person wants of a filter, whatever its kind.
struct Wish {
  std::optional<std::uint64_t> keys = {};  // --expect; of a window filter: how many a window holds
  double fpr = 1e-6;                       // --fpr
  std::optional<unsigned> generations = {};  // window filters: into how many a window is cut
  bool brief = false;  // a forecast may leave out lines and settings: for searches, which ask often
};

// Keys an unsized filter is planned for; the command line says so when it applies.
inline constexpr std::uint64_t kStandardCapacity = 8'000'000;

}  // namespace sluice
