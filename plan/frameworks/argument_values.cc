// SPDX-License-Identifier: Apache-2.0
#include "plan/frameworks/argument_values.h"

#include <cstdint>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "plan/frameworks/megatron_argument_table.h"
#include "plan/frameworks/megatron_settings.h"

namespace weir::plan {

MegatronArgument SwitchArgument(std::function<void(MegatronSettings*)> set) {
  return {false, [set = std::move(set)](const std::string&,
                                        MegatronSettings* settings) {
            set(settings);
            return std::string();
          }};
}

MegatronArgument CountArgument(
    std::function<void(MegatronSettings*, uint32_t)> set) {
  return {true, [set = std::move(set)](const std::string& text,
                                       MegatronSettings* settings) {
            uint32_t count = 0;
            if (!absl::SimpleAtoi(text, &count)) {
              return std::string("a whole number");
            }
            set(settings, count);
            return std::string();
          }};
}

MegatronArgument SizeArgument(
    std::function<void(MegatronSettings*, uint32_t)> set) {
  return {true, [set = std::move(set)](const std::string& text,
                                       MegatronSettings* settings) {
            uint32_t count = 0;
            if (!absl::SimpleAtoi(text, &count) || count == 0) {
              return std::string("a whole number, 1 or more");
            }
            set(settings, count);
            return std::string();
          }};
}

MegatronArgument NumberArgument(
    std::function<void(MegatronSettings*, double)> set) {
  return {true, [set = std::move(set)](const std::string& text,
                                       MegatronSettings* settings) {
            double number = 0;
            if (!absl::SimpleAtod(text, &number))
              return std::string("a number");
            set(settings, number);
            return std::string();
          }};
}

MegatronArgument WordArgument(
    std::map<std::string, std::function<void(MegatronSettings*)>> words) {
  return {true, [words = std::move(words)](const std::string& text,
                                           MegatronSettings* settings) {
            const auto found = words.find(text);
            if (found == words.end()) {
              return absl::StrJoin(words, " or ",
                                   [](std::string* out, const auto& word) {
                                     absl::StrAppend(out, word.first);
                                   });
            }
            found->second(settings);
            return std::string();
          }};
}

MegatronArgument StateWordArgument(void (Training::*set)(StateFormat)) {
  const auto to = [set](StateFormat format) {
    return [set, format](MegatronSettings* settings) {
      (settings->training().*set)(format);
    };
  };
  return WordArgument({{"fp32", to(STATE_FP32)},
                       {"bf16", to(STATE_BF16)},
                       {"fp16", to(STATE_FP16)},
                       {"fp8", to(STATE_FP8)}});
}

}  // namespace weir::plan
