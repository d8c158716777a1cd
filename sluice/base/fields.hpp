// How messages name what a person can change. The library writes the name of a field in backticks:
// "`fpr` must be above 0". A front end says its own word in place of it: --fpr on a command line,
// FPR in a command of a server, fpr= in Python. Who shows messages as they are shows `fpr`.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

// The front end's word for a field. Nothing: it knows no such field, and the text stays as it is.
using FieldWords = std::function<std::optional<std::string>(std::string_view field)>;

// `message` with the front end's words for the fields that it names.
std::string in_words_of(std::string_view message, const FieldWords& words);

}  // namespace sluice
