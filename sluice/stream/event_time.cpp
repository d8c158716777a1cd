#include "sluice/stream/event_time.hpp"

#include <fmt/format.h>

#include <utility>

#include "sluice/stream/civil_time.hpp"
#include "sluice/stream/format_keys.hpp"
#include "sluice/stream/json_key.hpp"
#include "sluice/stream/key_form.hpp"

namespace sluice {
namespace {

// A number in JSON has lost its spelling: 202601011000 is 202601011e3.
std::string without_exponent(std::string_view text) {
  constexpr int kMostZeros = 12;
  const std::size_t at = text.find('e');
  if (at == std::string_view::npos) return std::string(text);
  std::string_view rest = text.substr(at + 1);
  const auto zeros = civil::take_number(rest, 1, 2);
  if (!zeros || !rest.empty() || *zeros > kMostZeros) return std::string(text);
  return std::string(text.substr(0, at)) + std::string(static_cast<std::size_t>(*zeros), '0');
}

}  // namespace

EventTimes::EventTimes(const Format& format, const std::string& fields, const TimeReader& reader,
                       bool days, const KeyStyle& style)
    : json_(format.kind == Format::Kind::json),
      reader_(reader),
      days_(days),
      written_(style.by == KeyStyle::By::fields ? fields : ""),
      fields_(make_key_extractor(format, std::span(&fields, 1), style)),
      texts_(kBatchRecords),
      found_(kBatchRecords) {}

std::size_t EventTimes::extract(std::span<const Record> records, std::span<Nanoseconds> times,
                                std::span<KeyStatus> status) {
  const std::size_t count = records.size();
  fields_->extract(records, std::span(texts_).first(count), std::span(found_).first(count));
  const std::size_t parts = fields_->parts();
  std::size_t keyed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    times[i] = 0;
    if (found_[i] == KeyStatus::keyed) found_[i] = read(texts_[i], parts, times[i]);
    if (status[i] == KeyStatus::keyed) status[i] = found_[i];
    keyed += status[i] == KeyStatus::keyed;
  }
  return keyed;
}

std::size_t EventTimes::read_all(std::span<const std::string_view> texts,
                                 std::span<Nanoseconds> times, std::span<KeyStatus> status) {
  std::size_t keyed = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = 0;
    if (status[i] == KeyStatus::keyed)
      status[i] = texts[i].data() == nullptr ? KeyStatus::missing : read(texts[i], 1, times[i]);
    keyed += status[i] == KeyStatus::keyed;
  }
  return keyed;
}

KeyStatus EventTimes::read(std::string_view form, std::size_t parts, Nanoseconds& time) {
  const auto text = text_of(form, parts);
  const auto parsed = text ? reader_.read(*text) : std::nullopt;
  if (!parsed) return KeyStatus::malformed;
  if (!days_ && reader_.is_day(*text)) return KeyStatus::day_only;
  time = *parsed;
  return KeyStatus::keyed;
}

// What the form of a key says, as text. Several fields are joined by a blank. A number in JSON has
// lost its spelling, so it cannot be a date or a part of one.
std::optional<std::string_view> EventTimes::text_of(std::string_view form, std::size_t parts) {
  if (parts == 1) {
    if (!json_) return form;
    if (form.starts_with('d') && reader_.format() == TimeFormat::iso8601) return std::nullopt;
    return json_scalar_text(form);
  }
  joined_.clear();
  for (std::size_t part = 0; part < parts; ++part) {
    if (json_ && !form.starts_with('s')) return std::nullopt;
    if (json_) form.remove_prefix(1);
    if (part > 0) joined_ += ' ';
    joined_ += take_part(form);
  }
  return joined_;
}

std::string EventTimes::why_not(const Record& record) {
  std::string why = fields_->why_not(record);
  if (!why.empty()) return why;
  Nanoseconds time = 0;
  fields_->extract({&record, 1}, std::span(texts_).first(1), std::span(found_).first(1));
  const KeyStatus status = read(texts_[0], fields_->parts(), time);
  const auto text = text_of(texts_[0], fields_->parts());
  if (status == KeyStatus::keyed) return "";
  if (!text)
    return fmt::format("{} is not {} in {}", fields_->name(), reader_.expected(),
                       quoted(record.text()));
  std::string what = "not " + reader_.expected();
  if (status == KeyStatus::day_only) what = "a date without a time of day";
  if (reader_.is_off_clock(*text)) what = "a time that occurs twice or never in its zone";
  return fmt::format("{}, {}, {} {}", fields_->name(), quoted(*text),
                     fields_->parts() == 1 ? "is" : "are", what);
}

std::string EventTimes::why_another(const Record& record) {
  fields_->extract({&record, 1}, std::span(texts_).first(1), std::span(found_).first(1));
  if (found_[0] != KeyStatus::keyed) return "";
  const auto text = text_of(texts_[0], fields_->parts());
  if (!text || reader_.read(*text)) return "";
  const std::string advice = reader_.advice(*text, written_);
  return advice.empty() ? "" : fmt::format("{}: {}", why_not(record), advice);
}

std::string EventTimes::why_day(const Record& record) {
  const bool days = std::exchange(days_, false);
  std::string why = why_not(record);
  days_ = days;
  return why;
}

std::string EventTimes::why_unclear(const Record& record) {
  fields_->extract({&record, 1}, std::span(texts_).first(1), std::span(found_).first(1));
  if (found_[0] != KeyStatus::keyed) return "";
  const auto spelled = text_of(texts_[0], fields_->parts());
  const std::string text = spelled ? without_exponent(*spelled) : "";
  const Unclear unclear = reader_.is_unclear(text);
  if (unclear == Unclear::no) return "";
  return fmt::format(
      "{}, {}, {}", fields_->name(), quoted(text),
      unclear == Unclear::day
          ? "may be a date, or seconds since 1970: give `time_format` iso8601 for dates (in JSON: "
            "as "
            "strings), or s for seconds"
          : "may be a date with a time of day, or milliseconds since 1970: give `time_format` ms "
            "for "
            "milliseconds; such a date is read as 20260101T1000 or 2026-01-01 10:00");
}

}  // namespace sluice
