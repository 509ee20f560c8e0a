#include "conf/presets.h"

#include "base/err.h"

#define CHAT     SNAP_WIRE_CHAT
#define MESSAGES SNAP_WIRE_MESSAGES

static const struct conf_preset PRESETS[] = {
    {"openai", "https://api.openai.com/v1", CHAT, "OPENAI_API_KEY", NULL},
    {"anthropic", "https://api.anthropic.com/v1", MESSAGES, "ANTHROPIC_API_KEY", NULL},
    {"mistral", "https://api.mistral.ai/v1", CHAT, "MISTRAL_API_KEY", NULL},
    {"groq", "https://api.groq.com/openai/v1", CHAT, "GROQ_API_KEY", NULL},
    {"deepseek", "https://api.deepseek.com/v1", CHAT, "DEEPSEEK_API_KEY", NULL},
    {"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", CHAT, "GEMINI_API_KEY",
	"GOOGLE_API_KEY"},
    {"openrouter", "https://openrouter.ai/api/v1", CHAT, "OPENROUTER_API_KEY", NULL},
    {"together", "https://api.together.xyz/v1", CHAT, "TOGETHER_API_KEY", NULL},
    {"fireworks", "https://api.fireworks.ai/inference/v1", CHAT, "FIREWORKS_API_KEY", NULL},
    {"cerebras", "https://api.cerebras.ai/v1", CHAT, "CEREBRAS_API_KEY", NULL},
    {"cohere", "https://api.cohere.ai/compatibility/v1", CHAT, "COHERE_API_KEY", "CO_API_KEY"},
    {"dashscope", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", CHAT,
	"DASHSCOPE_API_KEY", NULL},
    {"huggingface", "https://router.huggingface.co/v1", CHAT, "HF_TOKEN", NULL},
    {"inception", "https://api.inceptionlabs.ai/v1", CHAT, "INCEPTION_API_KEY", NULL},
    {"minimax", "https://api.minimax.io/v1", CHAT, "MINIMAX_API_KEY", NULL},
    {"moonshot", "https://api.moonshot.ai/v1", CHAT, "MOONSHOT_API_KEY", NULL},
    {"nebius", "https://api.studio.nebius.ai/v1", CHAT, "NEBIUS_API_KEY", NULL},
    {"nvidia", "https://integrate.api.nvidia.com/v1", CHAT, "NVIDIA_API_KEY", NULL},
    {"perplexity", "https://api.perplexity.ai", CHAT, "PERPLEXITY_API_KEY", NULL},
    {"sambanova", "https://api.sambanova.ai/v1", CHAT, "SAMBANOVA_API_KEY", NULL},
    {"xai", "https://api.x.ai/v1", CHAT, "XAI_API_KEY", NULL},
    {"zai", "https://api.z.ai/api/paas/v4", CHAT, "ZAI_API_KEY", NULL},
    {"llamacpp", "http://127.0.0.1:8080/v1", CHAT, NULL, NULL},
    {"llamafile", "http://127.0.0.1:8080/v1", CHAT, NULL, NULL},
    {"lmstudio", "http://127.0.0.1:1234/v1", CHAT, NULL, NULL},
    {"ollama", "http://127.0.0.1:11434/v1", CHAT, NULL, NULL},
};

const struct conf_preset *
conf_presets(size_t *ret_count)
{
	*ret_count = ARRAY_LEN(PRESETS);
	return PRESETS;
}

const struct conf_preset *
conf_preset_find(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(PRESETS); i++)
		if (str_eq_nocase(type, str_c(PRESETS[i].type)))
			return &PRESETS[i];
	return NULL;
}
