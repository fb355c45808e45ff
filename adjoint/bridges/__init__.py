"""Rollouts and pictures as functions of other frameworks' tensors. Nothing else imports these."""
