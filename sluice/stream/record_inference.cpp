#include "sluice/stream/record_inference.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "sluice/base/error.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/json_key.hpp"

namespace sluice {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// What a record lacks; a prior that the table may know is not missed.
constexpr std::uint8_t kLacksCost = 1, kLacksPrior = 2, kMayLackPrior = 4;
constexpr std::string_view kName = "sluice_posterior";

double parse_number(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && std::isfinite(number) ? number : kNone;
}

bool is_cost(double number) {
  return number >= 0 && number <= kMostCost;
}

// What separates the posterior from the record.
char separator_of(const Format& format) {
  switch (format.kind) {
    case Format::Kind::csv:
    case Format::Kind::tsv:
      return csv_delimiter(format);
    default:
      return format.delimiter == 0 ? '\t' : format.delimiter;
  }
}

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

template <class T>
void keep(std::vector<T>& all, std::span<const KeyStatus> status) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < status.size(); ++i)
    if (status[i] == KeyStatus::keyed) all[next++] = all[i];
}

}  // namespace

NumberField::NumberField(const Format& format, const std::string& field, const char* name)
    : json_(format.kind == Format::Kind::json),
      name_(name),
      texts_(kBatchRecords),
      found_(kBatchRecords) {
  try {
    field_ = make_key_extractor(format, std::span(&field, 1));
    const bool several = json_ ? parse_json_pointers(field).size() > 1
                               : format.kind != Format::Kind::csv &&
                                     format.kind != Format::Kind::tsv &&
                                     field.find(',') != std::string::npos;
    if (several) throw BadKey(fmt::format("'{}' names several fields: give one", field));
  } catch (const BadKey& error) {
    throw BadParameters(fmt::format("{} {}", name, error.what()));
  }
}

void NumberField::set_header(const Record& header, const std::string& source) {
  try {
    field_->set_header(header);
  } catch (const BadKey& error) {
    throw BadParameters(fmt::format("{}: {} {}", source, name_, error.what()));
  }
}

void NumberField::extract(std::span<const Record> records, std::span<double> numbers) {
  const std::size_t count = records.size();
  field_->extract(records, std::span(texts_).first(count), std::span(found_).first(count));
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = kNone;
    if (found_[i] != KeyStatus::keyed) continue;
    const auto text = json_ ? json_scalar_text(texts_[i]) : std::optional(texts_[i]);
    if (text) numbers[i] = parse_number(*text);
  }
}

RecordInference::RecordInference(const Format& format, const InferOptions& options, bool has_table)
    : format_(format),
      options_(options),
      has_table_(has_table),
      per_record_(options.cost_lost_field || options.cost_duplicate_field),
      found_(kBatchRecords),
      lost_costs_(kBatchRecords),
      duplicate_costs_(kBatchRecords),
      lacking_(kBatchRecords),
      costs_(per_record_ ? kBatchRecords : 1),
      priors_(options.prior_field ? kBatchRecords : 0),
      posteriors_(kBatchRecords) {
  if (options.cost_lost_field) lost_.emplace(format, *options.cost_lost_field, "`cost_lost_field`");
  if (options.cost_duplicate_field)
    duplicate_.emplace(format, *options.cost_duplicate_field, "`cost_duplicate_field`");
  if (options.prior_field) prior_.emplace(format, *options.prior_field, "`prior_field`");
  costs_.front() = options.has_costs() ? Costs{.lost = options.cost_lost.value_or(1),
                                               .duplicate = options.cost_duplicate.value_or(1)}
                                       : Inference::kFilterAlone;
  // What a field says of a record cannot be checked before.
  if (!per_record_) costs_.front().check();
}

void RecordInference::set_header(const Record& header, const std::string& source) {
  for (std::optional<NumberField>* field : {&lost_, &duplicate_, &prior_})
    if (*field) (*field)->set_header(header, source);
}

void RecordInference::read_costs(std::span<const Record> records) {
  const auto read = [&](std::optional<NumberField>& field, std::optional<double> fixed,
                        std::vector<double>& out) {
    std::fill_n(out.begin(), records.size(), fixed.value_or(field ? kNone : 1));
    if (!field) return;
    field->extract(records, std::span(found_).first(records.size()));
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (is_cost(found_[i]))
        out[i] = found_[i];
      else
        lacking_[i] |= kLacksCost;
    }
  };
  read(lost_, options_.cost_lost, lost_costs_);
  read(duplicate_, options_.cost_duplicate, duplicate_costs_);
  for (std::size_t i = 0; i < records.size(); ++i)
    costs_[i] = is_cost(lost_costs_[i]) && is_cost(duplicate_costs_[i])
                    ? Costs{lost_costs_[i], duplicate_costs_[i]}
                    : Inference::kFilterAlone;
}

std::size_t RecordInference::extract(std::span<const Record> records, bool strict,
                                     std::span<KeyStatus> status) {
  std::fill_n(lacking_.begin(), records.size(), std::uint8_t{0});
  if (per_record_) read_costs(records);
  if (prior_) {
    prior_->extract(records, std::span(found_).first(records.size()));
    for (std::size_t i = 0; i < records.size(); ++i) {
      priors_[i] = Prior::arrival(found_[i]);
      // A record that the table may speak for lacks nothing.
      if (!priors_[i].known()) lacking_[i] |= has_table_ ? kMayLackPrior : kLacksPrior;
    }
  }
  std::size_t keyed = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (status[i] != KeyStatus::keyed) continue;
    if (strict && (lacking_[i] & (kLacksCost | kLacksPrior)) != 0) {
      status[i] = KeyStatus::missing;
      continue;
    }
    ++keyed;
    counts_.without_cost += (lacking_[i] & kLacksCost) != 0;
    counts_.without_prior += (lacking_[i] & (kLacksPrior | kMayLackPrior)) != 0;
  }
  return keyed;
}

void RecordInference::keep_keyed(std::span<const KeyStatus> status) {
  if (per_record_) keep(costs_, status);
  if (prior_) keep(priors_, status);
}

void RecordInference::spread(std::span<const KeyStatus> status) {
  auto next = static_cast<std::size_t>(std::ranges::count(status, KeyStatus::keyed));
  for (std::size_t i = status.size(); i-- > 0;)
    posteriors_[i] = status[i] == KeyStatus::keyed ? posteriors_[--next] : std::nullopt;
}

Inference::Known RecordInference::known(std::size_t count) const {
  return {.priors = std::span(priors_).first(std::min(priors_.size(), count)),
          .costs = std::span(costs_).first(per_record_ ? count : 1)};
}

// The record's bytes, the text, and what ends the record.
Record RecordInference::append(const Record& record, std::string_view text) {
  text_.assign(record.text());
  text_ += text;
  const std::size_t body = text_.size();
  text_.append(record.data + record.body, record.whole - record.body);
  return {text_.data(), body, text_.size()};
}

std::string posterior_column(const Format& format) {
  return fmt::format("{}{}", separator_of(format), kName);
}

Record RecordInference::with_name(const Record& header) {
  return append(header, posterior_column(format_));
}

// Malformed may be said of the record, or of its time alone.
bool RecordInference::is_whole(const Record& record, KeyStatus status) {
  if (status != KeyStatus::malformed) return true;
  switch (format_.kind) {
    case Format::Kind::csv:
    case Format::Kind::tsv:
      return split_fields(record.text(), csv_delimiter(format_), kMostFields, fields_);
    case Format::Kind::json:
      return tree_.parse(record.text());
    default:
      return true;
  }
}

// JSON: a member at the end of an object; what is no object stays as it is. Elsewhere a field at
// the end of the record.
Record RecordInference::with_posterior(const Record& record, const std::optional<double>& posterior,
                                       KeyStatus status) {
  if (!is_whole(record, status)) return record;
  if (format_.kind != Format::Kind::json) {
    const bool table = format_.kind == Format::Kind::csv || format_.kind == Format::Kind::tsv;
    return append(record, posterior ? fmt::format("{}{:.6g}", separator_of(format_), *posterior)
                                    : fmt::format("{}{}", separator_of(format_), table ? "" : "-"));
  }
  std::string_view text = record.text();
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  const auto first = std::ranges::find_if_not(text, is_space);
  if (first == text.end() || *first != '{') return record;
  text.remove_suffix(1);
  while (is_space(text.back())) text.remove_suffix(1);
  text_.assign(text);
  text_ += fmt::format("{}\"{}\":{}}}", text.back() == '{' ? "" : ",", kName,
                       posterior ? fmt::format("{:.6g}", *posterior) : "null");
  const std::size_t body = text_.size();
  text_.append(record.data + record.body, record.whole - record.body);
  return {text_.data(), body, text_.size()};
}

}  // namespace sluice
