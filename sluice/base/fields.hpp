// How messages name the options that a person can change. The library writes the name of a field in
// backticks: "`fpr` must be above 0". A front end replaces it by its own word: --fpr on a command
// line, FPR in a command of a server, fpr= in Python. Unreplaced, it reads `fpr`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// Returns the front end's word for a field, or nothing if it has none; then the text is not
// changed.
using FieldWords = std::function<std::optional<std::string>(std::string_view field)>;

// Returns `message` with each field that it names replaced by the front end's word.
std::string in_words_of(std::string_view message, const FieldWords& words);

}  // namespace sluice
